# gpu_stand_ins.py SITE FOLDER: PyPI's torch wants libraries for GPUs to be there before it can be imported, though nothing of
# them is called on a CPU. For those that are not below SITE (its site-packages), this makes stand-ins in FOLDER that have the
# names and versions which the loader looks for; whoever calls one of their functions is stopped at once.
import glob, os, re, subprocess, sys

site, folder = sys.argv[1:]

def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout

ours = glob.glob(site + "/torch/lib/*.so*")
present = glob.glob(site + "/**/*.so*", recursive=True)
needed, file_of_version, undefined, defined = set(), {}, {}, set()
for library in present:
    for line in said("readelf", "--dyn-syms", "-W", library).splitlines():
        words = line.split()
        if len(words) >= 8:
            name, _, version = words[7].partition("@")
            if words[6] != "UND":
                defined.add(name)
            elif library in ours:
                undefined[name] = version.strip("@")
    if library in ours:
        needed |= set(re.findall(r"NEEDED.*\[(.*?)\]", said("readelf", "-dW", library)))
        for file, version in re.findall(r"File: (\S+)|Name: (\S+) +Flags", said("readelf", "-VW", library).partition("Version needs")[2]):
            if file:
                current = file
            else:
                file_of_version[version] = current

missing = sorted(needed - {os.path.basename(p) for p in present})
missing = [name for name in missing if re.match("lib(cu|nv|nccl)", name)]
functions = {name: {} for name in missing}  # library -> version -> names
for version, file in file_of_version.items():
    if file in functions:
        functions[file][version] = []
# A name without a version is that of some library which has none: all of those get it.
plain = [name for name in missing if not functions[name]]
for name, version in undefined.items():
    if name in defined:
        continue
    if file_of_version.get(version) in functions:
        functions[file_of_version[version]][version].append(name)
    elif not version and re.match("cu|nv|nccl", name):
        for library in plain:
            functions[library].setdefault("", []).append(name)

for library, versions in functions.items():
    source, script = folder + "/stand_in.c", folder + "/stand_in.map"
    with open(source, "w") as out:
        out.writelines(f"void {name}(void) {{ __builtin_trap(); }}\n" for names in versions.values() for name in names)
    with open(script, "w") as out:
        out.writelines(f"{version} {{ {' '.join(name + ';' for name in names)} }};\n" for version, names in versions.items() if version)
    versioned = ["-Wl,--version-script=" + script] if any(versions) else []
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-Wl,-soname," + library, *versioned, "-o", f"{folder}/{library}", source], check=True)
