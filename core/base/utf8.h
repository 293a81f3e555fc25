// Text as readers of JSON and of pickles want it: UTF-8, or else mended.
#pragma once
#include <string>

namespace taper {

// The text with U+FFFD for each byte that is no part of a UTF-8 character.
std::string mended_utf8(const std::string& text);

// As a string of JSON: quoted, mended, and with escapes.
std::string json_quoted(const std::string& text);

}  // namespace taper
