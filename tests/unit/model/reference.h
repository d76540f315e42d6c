// The networks in plain loops over doubles, one sequence at a time, written from MATH 7, INTEROP and two_stream.h alone: the
// definition that lib/model is compared with. Rotary positions turn complex numbers here.
#pragma once

#include <cmath>
#include <complex>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "model/network.h"
#include "model/two_stream.h"

namespace gdds::model::reference {

using Rows = std::vector<std::vector<double>>;  // [positions][width]

inline Rows rows_of(const at::Tensor& t) {  // [n, w]
  const at::Tensor plain = t.detach().to(at::kDouble).contiguous();
  Rows rows;
  for (std::int64_t i = 0; i < plain.size(0); ++i)
    rows.emplace_back(plain.data_ptr<double>() + i * plain.size(1), plain.data_ptr<double>() + (i + 1) * plain.size(1));
  return rows;
}

inline double silu(double x) { return x / (1 + std::exp(-x)); }
inline double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

// x [L][h] of one head: the pair (i, i + h/2) is a complex number, turned by position times base^(-2i/h).
inline Rows turned(const Rows& x, double base) {
  Rows y = x;
  for (std::size_t l = 0; l < x.size(); ++l) {
    const std::size_t half = x[l].size() / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(l) * std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
      const auto z = std::complex<double>(x[l][i], x[l][i + half]) * std::polar(1.0, angle);
      y[l][i] = z.real();
      y[l][i + half] = z.imag();
    }
  }
  return y;
}

using Sees = std::function<bool(std::size_t query, std::size_t key)>;

// q k v [L][h] of one head; a query that sees nothing gets zero.
inline Rows attention(const Rows& q, const Rows& k, const Rows& v, const Sees& sees) {
  Rows y(q.size(), std::vector<double>(v[0].size(), 0));
  for (std::size_t l = 0; l < q.size(); ++l) {
    double total = 0;
    for (std::size_t j = 0; j < k.size(); ++j) {
      if (!sees(l, j)) continue;
      double score = 0;
      for (std::size_t c = 0; c < q[l].size(); ++c) score += q[l][c] * k[j][c];
      const double weight = std::exp(score / std::sqrt(static_cast<double>(q[l].size())));
      total += weight;
      for (std::size_t c = 0; c < v[j].size(); ++c) y[l][c] += weight * v[j][c];
    }
    if (total > 0)
      for (double& value : y[l]) value /= total;
  }
  return y;
}

class Reference {
 public:
  explicit Reference(const Model& model) : config_(model.config()) {
    for (const Parameter& p : model.parameters()) {
      const at::Tensor t = p.value.dim() == 1 ? p.value.unsqueeze(0) : p.value;
      values_[p.name] = rows_of(t);
    }
  }

  // ids, logits of one sequence: ddit and ar.
  Rows logits(const std::vector<std::int64_t>& ids, double sigma) const {
    const bool ddit = config_.arch == Arch::ddit;
    const Rows condition = ddit ? time({config_.time_conditioning ? sigma : 0.0}) : Rows();
    Rows x = embed(ids);
    for (std::int64_t n = 0; n < config_.blocks; ++n)
      block("blocks." + std::to_string(n) + ".", x, condition, [&](std::size_t l, std::size_t j) { return ddit || j <= l; });
    return output(x, condition);
  }

  Rows logits(const std::vector<std::int64_t>& x0, const std::vector<std::int64_t>& z, const std::vector<std::int64_t>& ranks, const std::vector<double>& sigma) const {
    Rows content = embed(x0), x = embed(z);
    for (std::int64_t n = 0; n < config_.blocks / 2; ++n)
      block("content." + std::to_string(n) + ".", content, {}, [&](std::size_t l, std::size_t j) { return ranks[j] <= ranks[l]; });
    content = norm(content, "content_norm");
    const Rows condition = time(sigma);
    for (std::int64_t n = 0; n < config_.blocks / 2; ++n)
      block("blocks." + std::to_string(n) + ".", x, condition, [&](std::size_t l, std::size_t j) { return ranks[j] < ranks[l]; }, &content);
    return output(x, condition);
  }

 private:
  const Rows& value(const std::string& name) const { return values_.at(name); }

  Rows embed(const std::vector<std::int64_t>& ids) const {
    Rows x;
    for (const std::int64_t id : ids) x.push_back(value("vocab_embed.embedding")[static_cast<std::size_t>(id)]);
    return x;
  }

  Rows linear(const Rows& x, const std::string& name) const {
    const Rows& weight = value(name + ".weight");
    const auto bias = values_.find(name + ".bias");
    Rows y(x.size(), std::vector<double>(weight.size()));
    for (std::size_t l = 0; l < x.size(); ++l)
      for (std::size_t o = 0; o < weight.size(); ++o) {
        double sum = bias == values_.end() ? 0 : bias->second[0][o];
        for (std::size_t i = 0; i < x[l].size(); ++i) sum += weight[o][i] * x[l][i];
        y[l][o] = sum;
      }
    return y;
  }

  Rows norm(Rows x, const std::string& name) const {
    for (auto& row : x) {
      double mean = 0, variance = 0;
      for (const double v : row) mean += v / static_cast<double>(row.size());
      for (const double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(row.size());
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = (row[i] - mean) / std::sqrt(variance + 1e-5) * value(name + ".weight")[0][i];
    }
    return x;
  }

  Rows time(const std::vector<double>& sigmas) const {
    Rows waves;
    for (const double sigma : sigmas) {
      std::vector<double> row(256);
      for (std::size_t i = 0; i < 128; ++i) {
        const double angle = sigma * std::pow(10000.0, -static_cast<double>(i) / 128);
        row[i] = std::cos(angle);
        row[128 + i] = std::sin(angle);
      }
      waves.push_back(row);
    }
    return each(linear(each(linear(waves, "sigma_map.mlp.0"), silu), "sigma_map.mlp.2"), silu);
  }

  static Rows each(Rows x, double (*f)(double)) {
    for (auto& row : x)
      for (double& v : row) v = f(v);
    return x;
  }

  // Part p of the modulation of position l, or what stands for it without one.
  struct Modulation {
    Rows rows;
    std::size_t d;
    double get(std::size_t l, std::size_t part, std::size_t i, double otherwise) const {
      return rows.empty() ? otherwise : rows[rows.size() == 1 ? 0 : l][part * d + i];
    }
  };

  void modulate(Rows& y, const Modulation& modulation, std::size_t part) const {
    for (std::size_t l = 0; l < y.size(); ++l)
      for (std::size_t i = 0; i < y[l].size(); ++i) y[l][i] = y[l][i] * (1 + modulation.get(l, part + 1, i, 0)) + modulation.get(l, part, i, 0);
  }
  void add(Rows& x, const Rows& y, const Modulation& modulation, std::size_t part) const {
    for (std::size_t l = 0; l < y.size(); ++l)
      for (std::size_t i = 0; i < y[l].size(); ++i) x[l][i] += modulation.get(l, part, i, 1) * y[l][i];
  }

  // Columns [from, from + count).
  static Rows part(const Rows& x, std::size_t from, std::size_t count) {
    Rows y;
    for (const auto& row : x) y.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(from), row.begin() + static_cast<std::ptrdiff_t>(from + count));
    return y;
  }

  void block(const std::string& name, Rows& x, const Rows& condition, const Sees& sees, const Rows* content = nullptr) const {
    const auto d = static_cast<std::size_t>(config_.d), h = d / static_cast<std::size_t>(config_.heads);
    const Modulation modulation = {condition.empty() ? Rows() : linear(condition, name + "adaLN_modulation"), d};
    Rows y = norm(x, name + "norm1");
    modulate(y, modulation, 0);
    Rows q, kv;
    if (content) {
      q = linear(y, name + "attn_q");
      kv = linear(*content, name + "attn_kv");
    } else {
      const Rows qkv = linear(y, name + "attn_qkv");
      q = part(qkv, 0, d);
      kv = part(qkv, d, 2 * d);
    }
    for (std::size_t from = 0; from < d; from += h) {
      const Rows head = attention(turned(part(q, from, h), config_.rotary_base), turned(part(kv, from, h), config_.rotary_base), part(kv, d + from, h), sees);
      for (std::size_t l = 0; l < y.size(); ++l) std::copy(head[l].begin(), head[l].end(), y[l].begin() + static_cast<std::ptrdiff_t>(from));
    }
    add(x, linear(y, name + "attn_out"), modulation, 2);
    y = norm(x, name + "norm2");
    modulate(y, modulation, 3);
    add(x, linear(each(linear(y, name + "mlp.0"), gelu), name + "mlp.2"), modulation, 5);
  }

  Rows output(const Rows& x, const Rows& condition) const {
    Rows y = norm(x, "output_layer.norm_final");
    modulate(y, {condition.empty() ? Rows() : linear(condition, "output_layer.adaLN_modulation"), static_cast<std::size_t>(config_.d)}, 0);
    return linear(y, "output_layer.linear");
  }

  ModelConfig config_;
  std::map<std::string, Rows> values_;
};

// The largest difference of a [L, w] tensor from rows.
inline double difference(const at::Tensor& t, const Rows& rows) {
  const Rows mine = rows_of(t);
  double worst = mine.size() == rows.size() ? 0 : INFINITY;
  for (std::size_t l = 0; l < rows.size(); ++l)
    for (std::size_t i = 0; i < rows[l].size(); ++i) worst = std::max(worst, std::abs(mine[l][i] - rows[l][i]));
  return worst;
}

inline std::vector<std::int64_t> ids_of(const at::Tensor& row) { return {row.data_ptr<std::int64_t>(), row.data_ptr<std::int64_t>() + row.numel()}; }

}  // namespace gdds::model::reference
