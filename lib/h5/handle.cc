// See handle.h.
#include "h5/handle.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace gdds::h5 {
namespace {

// 16-bit floats as HDF5 describes them: sign, exponent and fraction positions. h5py shows binary16 as float16.
Handle sixteen_bits(std::size_t exponent_bits, std::size_t bias) {
  Handle type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  const std::size_t fraction = 15 - exponent_bits;
  H5Tset_fields(type.get(), 15, fraction, exponent_bits, 0, fraction);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), bias);
  return type;
}

hid_t predefined(Type type) {
  switch (type) {
    case Type::uint8: return H5T_STD_U8LE;
    case Type::uint16: return H5T_STD_U16LE;
    case Type::int32: return H5T_STD_I32LE;
    case Type::int64: return H5T_STD_I64LE;
    case Type::float32: return H5T_IEEE_F32LE;
    case Type::float64: return H5T_IEEE_F64LE;
    case Type::float16:
    case Type::bfloat16: break;
  }
  return -1;
}

bool integer_type(hid_t id, Type& type) {
  const bool is_signed = H5Tget_sign(id) == H5T_SGN_2;
  switch (H5Tget_size(id)) {
    case 1: type = Type::uint8; return !is_signed;
    case 2: type = Type::uint16; return !is_signed;
    case 4: type = Type::int32; return is_signed;
    case 8: type = Type::int64; return is_signed;
    default: return false;
  }
}

}  // namespace

void start_library() {
  static const bool once = [] {
    H5dont_atexit();  // a file that cannot be flushed would be tried again at exit, noisily
    H5open();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    return true;
  }();
  (void)once;
}

Reason take_reason() {
  Reason reason;
  const auto visit = [](unsigned n, const H5E_error2_t* error, void* data) -> herr_t {
    auto& r = *static_cast<Reason*>(data);
    const char* const text = error->desc != nullptr ? error->desc : "";
    if (n == 0) r.text = text;
    if (const char* number = std::strstr(text, "errno = "); number != nullptr && r.error_number == 0)
      r.error_number = std::atoi(number + 8);
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, visit, &reason);
  H5Eclear2(H5E_DEFAULT);
  return reason;
}

void fail_read(const std::string& file, const std::string& what) {
  const Reason reason = take_reason();
  if (reason.error_number == ENOMEM) throw std::bad_alloc();
  if (reason.error_number != 0) fail_errno(file, "cannot read " + what, reason.error_number);
  reject("{}: {} is damaged ({})", file, what, reason.text);
}

void fail_write(const std::string& file, const std::string& what) {
  const Reason reason = take_reason();
  if (reason.error_number != 0) fail_errno(file, "cannot write", reason.error_number);
  fail("{}: cannot write {} ({})", file, what, reason.text);
}

Handle stored_type(Type type) {
  if (type == Type::float16) return sixteen_bits(5, 15);
  if (type == Type::bfloat16) return sixteen_bits(8, 127);
  return Handle(H5Tcopy(predefined(type)), H5Tclose);
}

bool element_type(hid_t id, Type& type) {
  const H5T_class_t kind = H5Tget_class(id);
  if (kind == H5T_INTEGER) return integer_type(id, type);
  if (kind != H5T_FLOAT) return false;
  for (const Type candidate : {Type::float32, Type::float64, Type::float16, Type::bfloat16}) {
    if (H5Tget_size(id) != type_size(candidate)) continue;
    type = candidate;
    if (type_size(candidate) > 2 || H5Tequal(id, stored_type(candidate).get()) > 0) return true;
  }
  return false;
}

}  // namespace gdds::h5
