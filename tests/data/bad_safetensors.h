// Every way in which a safetensors file can be wrong that fits in a few bytes.
#pragma once
#include <ostream>
#include <vector>

#include "taper/tests/data/safetensors_bytes.h"

namespace taper::testing {

// A file that is refused, and a part of what the Error says.
struct Bad {
  const char* name;
  std::string bytes;
  const char* says;
};

inline void PrintTo(const Bad& bad, std::ostream* out) {
  *out << bad.name;
}

inline std::string one(const std::string& dtype,
                       const std::string& shape,
                       const std::string& offsets) {
  return object(member("a", dtype, shape, offsets));
}

inline std::string named(const std::string& name) {
  return object(member(name, "F32", "[2]", "[0,8]"));
}

inline std::string described(const std::string& value) {
  return "{\"__metadata__\":" + value + "}";
}

inline const std::string kFine = one("F32", "[2]", "[0,8]");

// Too short for its header, or claiming to be longer than it is.
inline std::vector<Bad> bad_lengths() {
  return {
      {"Empty", "", "has 0 bytes"},
      {"SevenBytes", "1234567", "has 7 bytes"},
      {"NoHeader", length_bytes(0), "no JSON"},
      {"LargestLength", length_bytes(UINT64_MAX) + "{}", "claims 18446744073709551615 bytes"},
      {"LengthOfFilePlusOne", length_bytes(11) + "{}", "claims 11 bytes, the file has 10"},
      {"LengthOneTooLarge", length_bytes(3) + "{}", "claims 3 bytes, the file has 10"},
      {"LengthBeyondTheLimit", length_bytes(100'000'001) + "{}", "at most 100000000"},
      {"OnlyLength", length_bytes(2), "claims 2 bytes, the file has 8"},
  };
}

// Headers that are not one JSON object in UTF-8.
inline std::vector<Bad> bad_texts() {
  const std::string hole(1, '\0');
  return {
      {"NameIsNoUtf8", file_of(named("\xff"), 8), "no JSON"},
      {"NameIsOverlongUtf8", file_of(named("\xc0\xaf"), 8), "no JSON"},
      {"NameIsUtf8CutShort", file_of(named("\xe2\x82"), 8), "no JSON"},
      {"NameIsEncodedSurrogate", file_of(named("\xed\xa0\x80"), 8), "no JSON"},
      {"MetadataIsNoUtf8", file_of(described("{\"k\":\"\x80\"}")), "no JSON"},
      {"BraceOnly", file_of("{"), "no JSON"},
      {"TopIsArray", file_of("[]"), "begin with '{'"},
      {"TopIsNumber", file_of("3"), "begin with '{'"},
      {"TopIsText", file_of("\"a\""), "begin with '{'"},
      {"TopIsNull", file_of("null"), "begin with '{'"},
      {"OnlySpaces", file_of("        "), "begin with '{'"},
      {"ByteOrderMark", file_of("\xef\xbb\xbf{}"), "begin with '{'"},
      {"WordAfterTheEnd", file_of("{} x"), "no JSON"},
      {"ObjectAfterTheEnd", file_of("{}{}"), "no JSON"},
      {"NulAfterTheEnd", file_of("{}" + hole), "no JSON"},
      {"NulAndMoreAfterTheEnd", file_of("{}" + hole + kFine), "no JSON"},
      {"NulInside", file_of("{" + hole + "}"), "no JSON"},
      {"Comment", file_of("{/* */}"), "no JSON"},
      {"TrailingComma", file_of("{\"__metadata__\":{},}"), "no JSON"},
      {"BareControl", file_of(named("a\nb"), 8), "no JSON"},
      {"NestedArrays", file_of(std::string(100'000, '[')), "begin with '{'"},
      {"ShapeInShape", file_of(one("F32", "[[2]]", "[0,8]"), 8), "a list"},
      {"NestedShapes", file_of(one("F32", std::string(100'000, '['), "[]")), "is longer than"},
      {"NestedObjects", file_of([] {
         std::string text = "{\"a\":";
         for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
         return text;
       }()),
       "an object"},
      {"LoneHighSurrogate", file_of(named("\\ud800"), 8), "no JSON"},
      {"LoneLowSurrogate", file_of(named("\\udc00"), 8), "no JSON"},
      {"LoneSurrogateInMetadata", file_of(described("{\"k\":\"\\ud800x\"}")), "no JSON"},
  };
}

// JSON that says something else than names, dtypes, shapes and offsets, once each.
inline std::vector<Bad> bad_members() {
  const std::string a = member("a", "F32", "[2]", "[0,8]");
  return {
      {"SameNameSameOffsets", file_of(object(a + "," + a), 8), "'a' appears twice"},
      {"SameNameOtherOffsets", file_of(object(a + "," + member("a", "F32", "[2]", "[8,16]")), 16),
       "'a' appears twice"},
      {"SameNameEscaped", file_of(object(a + "," + member("\\u0061", "F32", "[2]", "[8,16]")), 16),
       "'a' appears twice"},
      {"MetadataTwice", file_of("{\"__metadata__\":{},\"__metadata__\":{}}"),
       "'__metadata__' appears twice"},
      {"MetadataKeyTwice", file_of(described("{\"k\":\"1\",\"k\":\"2\"}")), "'k' appears twice"},
      {"MetadataNumber", file_of(described("{\"k\":1}")), "the number 1"},
      {"MetadataNull", file_of(described("{\"k\":null}")), "null"},
      {"MetadataBool", file_of(described("{\"k\":true}")), "a bool"},
      {"MetadataList", file_of(described("{\"k\":[]}")), "a list"},
      {"MetadataObject", file_of(described("{\"k\":{}}")), "an object"},
      {"MetadataItselfIsText", file_of(described("\"x\"")), "the text 'x'"},
      {"MetadataItselfIsList", file_of(described("[]")), "a list"},
      {"TensorIsNumber", file_of("{\"a\":7}"), "the number 7"},
      {"TensorIsList", file_of("{\"a\":[]}"), "a list"},
      {"TensorIsNull", file_of("{\"a\":null}"), "null"},
      {"TensorIsEmpty", file_of("{\"a\":{}}"), "must have dtype, shape and two data_offsets"},
      {"NoDtype", file_of("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8), "must have dtype"},
      {"NoShape", file_of("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8),
       "must have dtype"},
      {"NoOffsets", file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8), "must have dtype"},
      {"OneFieldMore",
       file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"b\":1}}", 8),
       "the number 1"},
      {"FieldTwice",
       file_of("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
               8),
       "'dtype' appears twice"},
      {"UnknownDtype", file_of(one("F31", "[2]", "[0,8]"), 8), "unknown dtype 'F31'"},
      {"EmptyDtype", file_of(one("", "[2]", "[0,8]"), 8), "unknown dtype ''"},
      {"LowerCaseDtype", file_of(one("f32", "[2]", "[0,8]"), 8), "unknown dtype 'f32'"},
      {"DtypeWithNul", file_of(one("F32\\u0000", "[2]", "[0,8]"), 8), "unknown dtype 'F32"},
      {"DtypeIsNumber", file_of("{\"a\":{\"dtype\":32}}"), "the number 32"},
      {"NotOfTaper", file_of(one("I16", "[4]", "[0,8]"), 8),
       "'a' is I16, which Taper has no dtype for"},
      {"EmptyName", file_of(named(""), 8), "a tensor has no name"},
      {"NulInName", file_of(named("a\\u0000b"), 8), "control character"},
      {"LineBreakInName", file_of(named("a\\nb"), 8), "control character"},
      {"NameOf1025Bytes", file_of(named(std::string(1025, 'n')), 8), "is longer than 1024"},
      {"KeyOf1025Bytes", file_of(described("{\"" + std::string(1025, 'n') + "\":\"\"}")),
       "is longer than 1024"},
      {"LongName", file_of(named(std::string(1 << 20, 'n')), 8), "is longer than"},
      {"PathAsName", file_of(named("../../etc/passwd"), 8), "'../../etc/passwd'"},
      {"PathInsideName", file_of(named("a/../b"), 8), "'a/../b'"},
  };
}

// Sizes that are no sizes, overflow, or do not fit the bytes.
inline std::vector<Bad> bad_shapes() {
  const auto shape = [](const std::string& s) { return file_of(one("F32", s, "[0,8]"), 8); };
  return {
      {"NegativeSize", shape("[-1]"), "the number -1"},
      {"NegativeZero", shape("[-0]"), "the number"},
      {"SizeWithPoint", shape("[1.0]"), "the number 1.0"},
      {"SizeWithExponent", shape("[1e3]"), "the number 1e3"},
      {"SizeIsText", shape("[\"2\"]"), "the text '2'"},
      {"SizeIsBool", shape("[true]"), "a bool"},
      {"SizeIsNull", shape("[null]"), "null"},
      {"ShapeIsNumber", shape("2"), "the number 2"},
      {"SizeBeyondInt64", shape("[2,18446744073709551614]"), "the number 18446744073709551614"},
      {"SizeBeyondUint64", shape("[18446744073709551616]"), "the number 18446744073709551616"},
      {"SizesOverflow", shape("[2,9223372036854775807]"), "overflows"},
      {"BitsOverflow", shape("[1152921504606846976]"), "overflows"},
      {"SizesThatWrapToFit", shape("[4294967296,4294967296,2]"), "overflows"},
      {"NineDims", shape("[1,1,1,1,1,1,1,1,2]"), "more than 8 dims"},
      {"ManyDims",
       shape("[1" +
             [] {
               std::string ones;
               for (int i = 0; i < 100'000; ++i) ones += ",1";
               return ones;
             }() +
             "]"),
       "is longer than"},
      {"EmptyButVast", file_of(one("U8", "[0,4611686018427387904,4611686018427387904]", "[0,0]")),
       "tensor 'a'"},
      {"ShapeNeedsMore", shape("[3]"), "needs 12 bytes, the header gives it 8"},
      {"ShapeNeedsLess", shape("[1]"), "needs 4 bytes, the header gives it 8"},
      {"HalfByteLeft", file_of(one("F4", "[3]", "[0,2]"), 2), "whole bytes"},
      {"SixBitsLeft", file_of(one("F6_E2M3", "[1]", "[0,1]"), 1), "whole bytes"},
      {"EmptyShapeWithBytes", file_of(one("F32", "[0]", "[0,4]"), 4),
       "needs 0 bytes, the header gives it 4"},
  };
}

// Bytes with gaps, overlaps, or not up to the end of the file.
inline std::vector<Bad> bad_offsets() {
  const auto offsets = [](const std::string& s) { return file_of(one("F32", "[2]", s), 8); };
  const auto two = [](const std::string& a, const std::string& b, std::size_t bytes) {
    return file_of(object(member("a", "U8", "[4]", a) + "," + member("b", "U8", "[4]", b)), bytes);
  };
  return {
      {"BackwardOffsets", offsets("[4,0]"), "lies at bytes 4 to 0"},
      {"BackwardFromZero", two("[0,4]", "[4,0]", 8), "'b' lies at bytes 4 to 0"},
      {"NoOffset", offsets("[]"), "two data_offsets"},
      {"OneOffset", offsets("[8]"), "two data_offsets"},
      {"ThreeOffsets", offsets("[0,8,8]"), "the number 8"},
      {"NegativeOffset", offsets("[-8,0]"), "the number -8"},
      {"OffsetWithPoint", offsets("[0.0,8]"), "the number 0.0"},
      {"BeginsLate", file_of(one("F32", "[2]", "[4,12]"), 12), "lies at bytes 4 to 12"},
      {"Hole", two("[0,4]", "[5,9]", 9), "'b' lies at bytes 5 to 9, the one before it ends at 4"},
      {"Overlap", two("[0,4]", "[3,7]", 7),
       "'b' lies at bytes 3 to 7, the one before it ends at 4"},
      {"SameBytes", two("[0,4]", "[0,4]", 4), "lies at bytes 0 to 4, the one before it ends at 4"},
      {"PastTheEnd", file_of(one("F32", "[2]", "[0,8]"), 4), "end at byte 8 of 4"},
      {"FarPastTheEnd", offsets("[0,18446744073709551615]"),
       "header gives it 18446744073709551615"},
      {"BytesAfterTheLast", file_of(kFine, 9), "end at byte 8 of 9"},
      {"BytesWithoutTensors", file_of("{}", 1), "end at byte 0 of 1"},
      {"TwoBytesShort", file_of(kFine, 6), "end at byte 8 of 6"},
  };
}

inline std::vector<Bad> bad_files() {
  std::vector<Bad> all;
  for (const auto& some :
       {bad_lengths(), bad_texts(), bad_members(), bad_shapes(), bad_offsets()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace taper::testing
