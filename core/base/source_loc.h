// Where the user's call stands: file, line and module scope, kept per thread while a public call
// runs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace taper {

// A place in the user's source. Taken by builtins, because clang 14 has no std::source_location.
struct SourceLoc {
  const char* file = "";
  const char* function = "";
  std::uint32_t line = 0;

  constexpr SourceLoc() = default;

  explicit constexpr SourceLoc(const char* in_file, const char* in_function, std::uint32_t at_line)
      : file(in_file), function(in_function), line(at_line) {}

  static constexpr SourceLoc current(const char* in_file = __builtin_FILE(),
                                     const char* in_function = __builtin_FUNCTION(),
                                     std::uint32_t at_line = __builtin_LINE()) {
    return SourceLoc(in_file, in_function, at_line);
  }

  bool known() const { return line != 0; }
};

// "train.cpp:42 in main"; the file without its folders.
std::string to_string(const SourceLoc& loc);

// The outermost public call of this thread, or, inside a forward of the user's, the outermost one
// there. Everything recorded or thrown inside inherits it.
struct CallSite {
  const SourceLoc* at = nullptr;   // the user's line, which outlives the call; null: no call runs
  const char* op = nullptr;        // the op that is running, for error messages
  const char* function = nullptr;  // the public function that was called
  const char* entry = nullptr;     // the op whose entry runs backwards, if one does
  // The tape entry that is worked on: the one running backwards, or the one that the running op is
  // about to record (exact while one thread records). 0: none.
  std::uint64_t entry_index = 0;
  std::uint32_t scope = 0;  // module scope, see scope_name

  bool active() const { return at != nullptr; }

  SourceLoc loc() const { return at != nullptr ? *at : SourceLoc(); }
};

extern thread_local constinit CallSite call_site __attribute__((tls_model("initial-exec")));

// Marks a public call, by default that of the function it stands in. The outermost one on a thread
// sets line and name; inner ones inherit them. `loc` outlives it.
class Call {
 public:
  explicit Call(const SourceLoc& loc, const char* function = __builtin_FUNCTION())
      : owner_(!call_site.active()) {
    if (owner_) {
      call_site.at = &loc;
      call_site.function = function;
    }
  }

  explicit Call(const SourceLoc&& loc, const char* function = "") = delete;

  ~Call() {
    if (owner_) call_site.at = nullptr;
  }

  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  bool owner_;
};

// Around a user's function that we call, such as a module's forward: the calls in it name lines of
// their own. Nothing happens when it is not a user's.
class UserCode {
 public:
  explicit UserCode(bool is_users)
      : at_(call_site.at), function_(call_site.function), is_users_(is_users) {
    if (is_users_) call_site.at = nullptr;
  }

  ~UserCode() {
    if (!is_users_) return;
    call_site.at = at_;
    call_site.function = function_;
  }

  UserCode(const UserCode&) = delete;
  UserCode& operator=(const UserCode&) = delete;

 private:
  const SourceLoc* at_;
  const char* function_;
  bool is_users_;
};

// Module scopes form a tree of names ("encoder.3.attn"); a scope is a small number, 0 the root.
// Returns the child of `parent` called `name`; thread-safe, the same number for the same path.
std::uint32_t scope_child(std::uint32_t parent, const std::string& name);
const std::string& scope_name(std::uint32_t scope);
// Their names by number, for debuggers, who can read memory but call nothing; null before the
// first.
extern const std::vector<const std::string*>* scope_names;

// For fork: no thread adds a scope between them.
void lock_scopes();
void unlock_scopes();

// Enters a module scope for as long as it lives.
class Scope {
 public:
  explicit Scope(const std::string& name) : Scope(scope_child(call_site.scope, name)) {}

  explicit Scope(std::uint32_t scope) : kept_(call_site.scope) { call_site.scope = scope; }

  ~Scope() { call_site.scope = kept_; }

  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::uint32_t kept_;
};

}  // namespace taper
