// Finds the characters of a UTF-8 text.
#include "taper/core/base/utf8.h"

#include <cstdio>

namespace taper {
namespace {

// The length of the UTF-8 character at s[i], 0 if there is none.
std::size_t utf8_length(const std::string& s, std::size_t i) {
  const auto at = [&](std::size_t k) -> unsigned {
    return k < s.size() ? static_cast<unsigned char>(s[k]) : 0;
  };
  const unsigned a = at(i), b = at(i + 1);
  if (a < 0x80) return 1;
  const std::size_t n = a >= 0xf0 ? 4 : a >= 0xe0 ? 3 : 2;
  if (a < 0xc2 || a > 0xf4) return 0;
  for (std::size_t k = 1; k < n; ++k) {
    if ((at(i + k) & 0xc0) != 0x80) return 0;
  }
  if ((a == 0xe0 && b < 0xa0) || (a == 0xed && b >= 0xa0)) return 0;  // too long; a surrogate
  if ((a == 0xf0 && b < 0x90) || (a == 0xf4 && b >= 0x90)) return 0;  // too long; too large
  return n;
}

}  // namespace

std::string mended_utf8(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = utf8_length(text, i);
    if (n == 0) out += "\xef\xbf\xbd";
    else out.append(text, i, n);
    i += n == 0 ? 1 : n;
  }
  return out;
}

std::string json_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : mended_utf8(text)) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < ' ') {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace taper
