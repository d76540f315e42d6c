// Matrices of other people's files: the right numbers, bit for bit, and no number of a header believed before the bytes
// are there. What may be wrong with a header is a table.
#include <cstring>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "graph/tensors.h"
#include "support/folder.h"

namespace gdds::graph {
namespace {

using test::error_of;

template <typename T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), std::data(values), bytes.size());
  return bytes;
}

std::string safetensors(const std::string& header, const std::string& data) {
  return bytes_of<std::uint64_t>({header.size()}) + header + data;
}

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  const auto size = static_cast<std::uint32_t>(header.size());
  bytes += version == 1 ? bytes_of<std::uint16_t>({static_cast<std::uint16_t>(size)}) : bytes_of<std::uint32_t>({size});
  return bytes + header + data;
}

std::vector<float> all_rows(std::string_view bytes, const Tensor& tensor) {
  std::vector<float> values(h5::element_count(tensor.shape));
  // A row at a time, from the last one: what is read does not depend on the order.
  for (std::uint64_t i = tensor.shape[0]; i-- > 0;)
    read_tensor_rows(bytes, tensor, i, 1, std::span(values).subspan(i * tensor.shape[1], tensor.shape[1]));
  return values;
}

TEST(Safetensors, ReadsEveryFloat) {
  const std::string data = bytes_of<float>({1, -2, 3, 4}) + bytes_of<std::uint16_t>({0x3c00, 0xc000, 0x3f80, 0xc040}) +
                           bytes_of<double>({0.5, 1e-3});
  const std::string file = safetensors(
      R"({"__metadata__":{"format":"pt","deep":[[1,{"a":null}]]},)"
      R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("h":{"dtype":"F16","shape":[1,2],"data_offsets":[16,20]},)"
      R"("b":{"dtype":"BF16","shape":[2,1],"data_offsets":[20,24]},)"
      R"("d":{"shape":[1,2],"data_offsets":[24,40],"dtype":"F64"},)"
      R"("none":{"dtype":"I64","shape":[0,7],"data_offsets":[40,40]}}  )",
      data);
  const auto tensors = parse_safetensors(file, "f");
  ASSERT_EQ(tensors.size(), 5u);
  EXPECT_EQ(all_rows(file, choose_tensor(tensors, "a", "f")), (std::vector<float>{1, -2, 3, 4}));
  EXPECT_EQ(all_rows(file, choose_tensor(tensors, "h", "f")), (std::vector<float>{1, -2}));
  EXPECT_EQ(all_rows(file, choose_tensor(tensors, "b", "f")), (std::vector<float>{1, -3}));
  EXPECT_EQ(all_rows(file, choose_tensor(tensors, "d", "f")), (std::vector<float>{0.5f, 1e-3f}));
}

TEST(Safetensors, RejectsHeadersThatLie) {
  const auto error = [](const std::string& header, const std::string& data = std::string(16, '\0')) {
    return error_of([&] { parse_safetensors(safetensors(header, data), "f"); });
  };
  const auto tensor = [](const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  EXPECT_EQ(error(tensor("[2,2]", "[0,16]")), "no error");
  EXPECT_EQ(error(tensor("[2,2]", "[0,17]")), "3 f: tensor 'a' is at bytes 0 to 17 of 16 bytes of data");
  EXPECT_EQ(error(tensor("[2,2]", "[8,4]")), "3 f: tensor 'a' is at bytes 8 to 4 of 16 bytes of data");
  EXPECT_EQ(error(tensor("[2,1]", "[0,16]")), "3 f: tensor 'a' [2, 1] of F32 has 16 bytes of data");
  EXPECT_EQ(error(tensor("[4611686018427387905,4]", "[0,16]")),
            "3 f: tensor 'a' [4611686018427387905, 4] of F32 has 16 bytes of data");
  EXPECT_EQ(error(tensor("[-2,-2]", "[0,16]")), "3 f: tensor 'a' has a value of the wrong type");
  EXPECT_EQ(error(tensor("[2.0,2]", "[0,16]")), "3 f: tensor 'a' has a value of the wrong type");
  EXPECT_EQ(error(tensor("[[2],2]", "[0,16]")), "3 f: tensor 'a' has an array where none belongs");
  EXPECT_EQ(error(tensor("[1,1,1,1,1,1,1,1,1]", "[0,16]")), "3 f: tensor 'a' has more than 8 numbers in a field");
  EXPECT_EQ(error(tensor("[2,2]", "[0]")), "3 f: tensor 'a' lacks dtype, shape or a pair of data_offsets");
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","shape":[2,2],"shape":[2,2],"data_offsets":[0,16]}})"),
            "3 f: tensor 'a' has a field that is not known, or twice");
  EXPECT_EQ(error(R"({"a":7})"), "3 f: tensor 'a' has a value of the wrong type");
  EXPECT_EQ(error(R"([1])"), "3 f: the header has an array where none belongs");
  EXPECT_EQ(error(R"({"a":)"), "3 f: the header is not JSON");
  EXPECT_EQ(error(std::string(100000, '[')), "3 f: the header has an array where none belongs");
  EXPECT_EQ(
      error(
          R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]},)"
          R"("b":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}})"),
      "3 f: tensors 'a' and 'b' overlap");
  EXPECT_EQ(
      error(
          R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
          R"("a":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}})"),
      "3 f: tensor 'a' occurs twice");
  EXPECT_EQ(error_of([] { parse_safetensors("1234567", "f"); }), "3 f: cut off: 7 bytes are no safetensors file");
  EXPECT_EQ(error_of([] { parse_safetensors(bytes_of<std::uint64_t>({3}) + "{}", "f"); }),
            "3 f: cut off: a header of 3 bytes in a file of 10");
  EXPECT_EQ(error_of([] { parse_safetensors(bytes_of<std::uint64_t>({~0ull}) + "{}", "f"); }),
            "3 f: a header of 18446744073709551615 bytes; expected at most 100000000");
}

TEST(Npy, ReadsEveryVersionAndType) {
  for (const char version : {1, 2, 3}) {
    const std::string single =
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }  \n", bytes_of<float>({1.5, -2}), version);
    EXPECT_EQ(all_rows(single, parse_npy(single, "f")), (std::vector<float>{1.5, -2}));
  }
  const std::string half =
      npy("{'shape':(1,2),'descr':\"<f2\",'fortran_order':False}", bytes_of<std::uint16_t>({0x3c00, 0xc000}));
  EXPECT_EQ(all_rows(half, parse_npy(half, "f")), (std::vector<float>{1, -2}));
  const std::string twice = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", bytes_of<double>({0.1}));
  EXPECT_EQ(all_rows(twice, parse_npy(twice, "f")), (std::vector<float>{0.1f}));
}

TEST(Npy, RejectsWhatItDoesNotRead) {
  const auto error = [](const std::string& header, const std::string& data = std::string(16, '\0'), char version = 1) {
    return error_of([&] { parse_npy(npy(header, data, version), "f"); });
  };
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"), "no error");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }"),
            "3 f: in Fortran order; expected C order, numpy.ascontiguousarray makes it");
  EXPECT_EQ(error("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2), }"),
            "3 f: elements of type '>f4'; expected '<f4', '<f2' or '<f8'");
  EXPECT_EQ(error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }"),
            "3 f: an array of records; expected one of floats");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"),
            "3 f: an array [4]; expected two dimensions");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"),
            "3 f: an array [2, 3] of <f4 with 16 bytes of data");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905, 4), }"),
            "3 f: an array [4611686018427387905, 4] of <f4 with 16 bytes of data");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 4), }"),
            "3 f: a number of the header is too large");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4), }", ""),
            "3 f: an array [0, 4] without elements");
  EXPECT_EQ(error("{'descr': '<f4', 'shape': (2, 2), }"), "3 f: the header lacks descr, fortran_order or shape");
  EXPECT_EQ(error("{'descr': '<f4"), "3 f: the header is not NumPy's: a text without an end");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", std::string(16, '\0'), 4),
            "3 f: .npy version 4; expected 1, 2 or 3");
  EXPECT_EQ(error_of([] { parse_npy(std::string("\x93NUMPY\x01\0\xff\xff{'", 12), "f"); }),
            "3 f: cut off: a header of 65535 bytes in a file of 12");
  EXPECT_EQ(error_of([] { parse_npy("\x93NUMPY", "f"); }), "3 f: cut off: 6 bytes are no .npy file");
}

TEST(Raw, IsWholeRows) {
  const std::string data = bytes_of<float>({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(all_rows(data, raw_tensor(24, 3, "float32", "f")), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(raw_tensor(24, 3, "float16", "f").shape, (h5::Shape{4, 3}));
  EXPECT_EQ(error_of([] { raw_tensor(23, 3, "float16", "f"); }),
            "3 f: 23 bytes are no whole number of rows of 3 float16");
  EXPECT_EQ(error_of([] { raw_tensor(0, 3, "float16", "f"); }),
            "3 f: 0 bytes are no whole number of rows of 3 float16");
}

TEST(Blocks, AreExpandedAsGgufSays) {
  std::string q8 = bytes_of<std::uint16_t>({0x3800}), q4 = bytes_of<std::uint16_t>({0x3800}),
              q41 = bytes_of<std::uint16_t>({0x3800, 0xbc00});
  for (int i = 0; i < 32; ++i) q8 += static_cast<char>(i * 8 - 128);
  for (int i = 0; i < 16; ++i) q4 += static_cast<char>(i | (15 - i) << 4), q41 += static_cast<char>(i | (15 - i) << 4);
  const auto values = [](const std::string& bytes, Element element) {
    return all_rows(bytes, {"", {1, 32}, element, "", 0});
  };
  const auto a = values(q8, Element::q8_0), b = values(q4, Element::q4_0), c = values(q41, Element::q4_1);
  for (int i = 0; i < 32; ++i) {
    const float q = static_cast<float>(i < 16 ? i : 31 - i);
    EXPECT_EQ(a[static_cast<std::size_t>(i)], 0.5f * static_cast<float>(i * 8 - 128));
    EXPECT_EQ(b[static_cast<std::size_t>(i)], 0.5f * (q - 8));
    EXPECT_EQ(c[static_cast<std::size_t>(i)], 0.5f * q - 1);
  }
}

TEST(ChooseTensor, TakesTheUsualNamesInTheirOrderAndSaysWhatThereIs) {
  const std::vector<Tensor> tensors = {{"token_embd.weight", {3, 2}, Element::f32, "F32", 0},
                                       {"wte.weight", {4, 2}, Element::f32, "F32", 0},
                                       {"bias", {4}, Element::f32, "F32", 0},
                                       {"ids", {4, 2}, Element::other, "I64", 0}};
  EXPECT_EQ(choose_tensor(tensors, "", "f").name, "wte.weight");
  EXPECT_EQ(choose_tensor(tensors, "token_embd.weight", "f").name, "token_embd.weight");
  EXPECT_EQ(error_of([&] { choose_tensor(tensors, "bias", "f"); }),
            "3 f: tensor 'bias' is [4]; expected two dimensions");
  EXPECT_EQ(error_of([&] { choose_tensor(tensors, "ids", "f"); }), "3 f: tensor 'ids' is of type I64; expected floats");
  EXPECT_EQ(error_of([&] { choose_tensor(tensors, "x\n", "f"); }),
            "3 f: no tensor 'x\\x0a'; its matrices: token_embd.weight, wte.weight, ids");
  std::vector<Tensor> many;
  for (int i = 0; i < 12; ++i)
    many.push_back({std::string(1, static_cast<char>('a' + i)), {2, 2}, Element::f32, "F32", 0});
  EXPECT_EQ(error_of([&] { choose_tensor(many, "", "f"); }),
            "3 f: no tensor of the usual names of a token embedding; choose one with --tensor; its first 10 of 12 "
            "matrices: a, b, c, d, e, f, g, h, i, j");
  EXPECT_EQ(error_of([&] { choose_tensor({}, "", "f"); }),
            "3 f: no tensor of the usual names of a token embedding; choose one with --tensor; it has no matrices");
}

// A byte changed or a tail cut off: a tensor inside the file, or status 3.
RC_GTEST_PROP(Safetensors, NeverPointOutsideTheFile, ()) {
  std::string file = safetensors(
      R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("b":{"dtype":"F16","shape":[2],"data_offsets":[16,20]}})",
      std::string(20, 'x'));
  const auto at = *rc::gen::inRange<std::size_t>(0, file.size());
  file[at] = *rc::gen::arbitrary<char>();
  file.resize(*rc::gen::inRange<std::size_t>(file.size() - 10, file.size() + 1));
  try {
    for (const Tensor& tensor : parse_safetensors(file, "f")) {
      RC_ASSERT(tensor.offset <= file.size());
      if (tensor.shape.size() == 2 && tensor.element != Element::other) all_rows(file, tensor);
    }
  } catch (const Error& error) {
    RC_ASSERT(error.status() == Status::rejected);
  }
}

}  // namespace
}  // namespace gdds::graph
