// Builds error messages: the text, then the user's line and module scope.
#include "taper/core/base/error.h"

#include <cstdio>
#include <cstdlib>

#include "taper/core/base/op_name.h"

namespace taper {
namespace {

// Checks outside of an op name it themselves: "cat: ..." for cat, "scatter: ..." for scatter_.
bool names(const std::string& op, const std::string& message) {
  const std::string stem = op.back() == '_' ? op.substr(0, op.size() - 1) : op;
  return message.rfind(stem + ":", 0) == 0 || message.rfind(stem + "_:", 0) == 0;
}

std::string full_text(const std::string& message,
                      const std::string& op,
                      const SourceLoc& loc,
                      const std::string& scope) {
  std::string text = op.empty() || names(op, message) ? message : op + ": " + message;
  if (loc.known()) text += "\n  at " + to_string(loc);
  if (!scope.empty()) text += ", scope " + scope;
  return text;
}

}  // namespace

Error::Error(std::string message, std::string op, SourceLoc loc, std::string scope)
    : std::runtime_error(full_text(message, op, loc, scope)),
      message_(std::move(message)),
      op_(std::move(op)),
      scope_(std::move(scope)),
      loc_(loc) {}

std::string join(std::initializer_list<TextPart> parts) {
  std::string out;
  for (const TextPart& part : parts) part.append_to(out);
  return out;
}

void append(std::string& out, double x) {
  char text[32];
  for (int digits : {6, 9, 17}) {
    std::snprintf(text, sizeof text, "%.*g", digits, x);
    if (std::strtod(text, nullptr) == x) break;
  }
  out += text;
}

void append(std::string& out, IntArrayRef sizes) {
  out += '(';
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(sizes[i]);
  }
  out += ')';
}

namespace {

// Constructors, operator+ and a module's forward say less than the op that they run.
bool names_an_op(std::string_view function) {
  return !function.empty() && function[0] >= 'a' && function[0] <= 'z' && function != "forward" &&
         function.substr(0, 8) != "operator";
}

}  // namespace

std::string op_name(const CallSite& site) {
  if (!site.active()) return "";
  std::string name;
  if (site.entry != nullptr) name = site.entry;
  else if (site.function != nullptr && names_an_op(site.function)) name = site.function;
  name = name.substr(0, name.find('<'));  // load<taper::nn::Linear>: the user wrote load
  if (site.op == nullptr) return name;
  const std::string op = site.op;
  if (name.empty() || name == op) return op;
  return name == op + "_" ? name : name + ": " + op;
}

void fail(std::string message) {
  const CallSite& site = call_site;
  throw Error(std::move(message), op_name(site), site.loc(), scope_name(site.scope));
}

void fail_dtype(const char* expected, const char* got) {
  fail(str("expected ", expected, " dtype, got ", got));
}

void fail_assert(const char* file, int line, const char* condition) {
  fail(str("defect in Taper: ", condition, " is false (", file, ":", line, "); please report it"));
}

}  // namespace taper
