// How many threads to work with: --threads, by default the cores this process may run on (its affinity mask, so that
// taskset and a batch system's limits are respected).
#pragma once

namespace gdds {

int available_cores();
void set_threads(int count);
int threads();

}  // namespace gdds
