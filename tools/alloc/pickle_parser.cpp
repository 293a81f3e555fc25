// Reads snapshots of PyTorch: runs the pickle's opcodes, of which none may call anything.
#include "taper/tools/alloc/pickle_parser.h"

namespace taper::tools {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMostValues = std::size_t{1} << 18;  // on the stack, and a 32nd of the file
constexpr unsigned kBitsOfMemo = 27;

// Opcodes that would import, call, or ask the reader for an object.
const char* name_of_call(unsigned char opcode) {
  switch (opcode) {
    case 'c': return "GLOBAL";
    case 'i': return "INST";
    case 'o': return "OBJ";
    case 'R': return "REDUCE";
    case 'b': return "BUILD";
    case 'P': return "PERSID";
    case 'Q': return "BINPERSID";
    case 0x81: return "NEWOBJ";
    case 0x82: return "EXT1";
    case 0x83: return "EXT2";
    case 0x84: return "EXT4";
    case 0x92: return "NEWOBJ_EX";
    case 0x93: return "STACK_GLOBAL";
    case 0x97: return "NEXT_BUFFER";
    default: return nullptr;
  }
}

}  // namespace

PickleParser::PickleParser(TraceInput& input, PickleShapes& shapes)
    : in_(input),
      shapes_(shapes),
      most_values_(kMostValues + static_cast<std::size_t>(input.size() / 32)) {}

void PickleParser::push(PickleKind kind, std::uint64_t bits) {
  if (stack_.size() == most_values_)
    in_.refuse(str("more than ", most_values_, " values that are in no list yet"));
  PickleValue v;
  v.kind = kind;
  v.bits = bits;
  stack_.push_back(v);
}

std::size_t PickleParser::last(std::size_t count) const {
  if (stack_.size() < count) in_.refuse("the stack is empty where a value is expected");
  return stack_.size() - count;
}

PickleValue& PickleParser::top() {
  return stack_[last(1)];
}

std::size_t PickleParser::pop_mark() {
  if (marks_.empty()) in_.refuse("no mark where one is expected");
  const std::size_t at = marks_.back();
  marks_.pop_back();
  if (at > stack_.size()) in_.refuse("the values after a mark are gone");
  return at;
}

void PickleParser::memoize(std::uint64_t slot) {
  PickleValue& v = top();
  if (slot > memo_.size() + 1)
    in_.refuse(str("expected a memo of at most ", memo_.size() + 1, ", got ", slot));
  if (slot >= memo_.size()) memo_.resize(slot + 1, static_cast<std::uint32_t>(PickleKind::kOther));
  v.memo = static_cast<std::uint32_t>(slot);
  replace(stack_.size() - 1, v);
}

void PickleParser::replace(std::size_t at, PickleValue value) {
  value.memo = stack_[at].memo;
  stack_[at] = value;
  if (value.memo == PickleValue::kNoMemo) return;
  const bool kept = value.kind != PickleKind::kNumber && value.bits >> kBitsOfMemo == 0;
  const PickleKind kind = kept ? value.kind : PickleKind::kOther;
  memo_[value.memo] = static_cast<std::uint32_t>(kind) << kBitsOfMemo |
                      static_cast<std::uint32_t>(kept ? value.bits : 0);
}

void PickleParser::recall(std::uint64_t slot) {
  if (slot >= memo_.size()) in_.refuse(str("expected a memo below ", memo_.size(), ", got ", slot));
  const std::uint32_t m = memo_[slot];
  const auto kind = static_cast<PickleKind>(m >> kBitsOfMemo);
  if (kind == PickleKind::kEvents || kind == PickleKind::kTrace)
    in_.refuse("an event or a trace stands in two places");
  push(kind, m & ((std::uint32_t{1} << kBitsOfMemo) - 1));
}

void PickleParser::append(std::size_t from) {
  if (from == 0) in_.refuse("items without a list to append them to");
  const PickleValue list =
      shapes_.append(stack_[from - 1], stack_.data() + from, stack_.size() - from);
  stack_.resize(from);
  replace(from - 1, list);
}

void PickleParser::set_items(std::size_t from) {
  if (from == 0 ||
      (stack_[from - 1].kind != PickleKind::kDict && stack_[from - 1].kind != PickleKind::kOther))
    in_.refuse("items without an empty dict to set them in");
  const std::size_t count = stack_.size() - from;
  if (count % 2 != 0) in_.refuse("a key without a value");
  if (count == 0) return;
  const std::size_t dict = from - 1;
  // Below the dict lies the list that it will be in, or the events of that list that came before.
  std::size_t around = dict;
  if (around > 0 && stack_[around - 1].kind == PickleKind::kEvents) --around;
  PickleValue* list = around > 0 ? &stack_[around - 1] : nullptr;
  if (list != nullptr && list->kind != PickleKind::kList && list->kind != PickleKind::kTrace)
    list = nullptr;
  const PickleValue made = shapes_.dict(stack_.data() + from, count / 2, list);
  stack_.resize(from);
  replace(dict, made);
  if (made.kind != PickleKind::kEvents) return;
  replace(around - 1, *list);
  if (around < dict) stack_.pop_back();  // one value stands for all of them
}

void PickleParser::tuple(std::size_t from) {
  stack_.resize(from);
  push(PickleKind::kOther);
}

void PickleParser::text(std::uint64_t bytes) {
  push(PickleKind::kText, shapes_.text(in_.text(bytes)));
}

void PickleParser::data(std::uint64_t bytes) {
  in_.skip(bytes);
  push(PickleKind::kOther);
}

void PickleParser::long_number(std::uint64_t bytes) {
  std::uint64_t n = 0;
  if (bytes == 9) {  // up to 2^64 - 1, as some write addresses
    n = in_.little(8);
    const bool fits = in_.byte() == 0 && n >> 63 == 0;
    return push(fits ? PickleKind::kNumber : PickleKind::kOther, fits ? n : 0);
  }
  if (bytes > 8) return data(bytes);
  if (bytes > 0) {
    n = in_.little(bytes);
    const auto unused = static_cast<unsigned>(64 - 8 * bytes);
    n = static_cast<std::uint64_t>(static_cast<std::int64_t>(n << unused) >> unused);
  }
  push(PickleKind::kNumber, n);
}

void PickleParser::constant(unsigned char opcode) {
  switch (opcode) {
    case 'N': return push(PickleKind::kNone);
    case 0x88:
    case 0x89: return push(PickleKind::kBool, opcode == 0x88);
    case 'K': return push(PickleKind::kNumber, in_.byte());
    case 'M': return push(PickleKind::kNumber, in_.little(2));
    case 'J':
      return push(PickleKind::kNumber, static_cast<std::uint64_t>(static_cast<std::int64_t>(
                                           static_cast<std::int32_t>(in_.little(4)))));
    case 0x8a: return long_number(in_.byte());
    case 0x8b: return long_number(in_.little(4));
    case 'G': in_.take(8); return push(PickleKind::kFraction);
    case 0x8c: return text(in_.byte());  // SHORT_BINUNICODE
    case 'X': return text(in_.little(4));
    case 0x8d: return text(in_.little(8));
    case 'U': return text(in_.byte());  // Python 2's texts
    case 'T': return text(in_.little(4));
    case 'C': return data(in_.byte());  // bytes
    case 'B': return data(in_.little(4));
    case 0x8e:
    case 0x96: return data(in_.little(8));
    default: refuse_opcode(opcode);
  }
}

bool PickleParser::step(unsigned char opcode) {
  switch (opcode) {
    case '.': return false;
    case 0x80:
      if (const unsigned version = in_.byte(); version < 2 || version > 5)
        in_.refuse(str("expected protocol 2 to 5, got ", version));
      break;
    case 0x95: in_.take(8); break;  // FRAME: a hint
    case '(':
      if (marks_.size() == kDeepest) in_.refuse(str("nested deeper than ", kDeepest));
      marks_.push_back(stack_.size());
      break;
    case '}': push(PickleKind::kDict); break;
    case ']': push(PickleKind::kList); break;
    case ')': push(PickleKind::kOther); break;
    case 'a': append(last(1)); break;
    case 'e': append(pop_mark()); break;
    case 's': set_items(last(2)); break;
    case 'u': set_items(pop_mark()); break;
    case 't': tuple(pop_mark()); break;
    case 0x85: tuple(last(1)); break;
    case 0x86: tuple(last(2)); break;
    case 0x87: tuple(last(3)); break;
    case 0x94: memoize(memo_.size()); break;
    case 'q': memoize(in_.byte()); break;
    case 'r': memoize(in_.little(4)); break;
    case 'h': recall(in_.byte()); break;
    case 'j': recall(in_.little(4)); break;
    default: constant(opcode);
  }
  return true;
}

void PickleParser::refuse_opcode(unsigned char opcode) const {
  const char* call = name_of_call(opcode);
  if (call != nullptr) {
    in_.refuse_at(in_.offset() - 1,
                  str("the opcode ", call, " is refused: a trace is data, and calls nothing"));
  }
  in_.refuse_at(in_.offset() - 1, str("the opcode ", static_cast<int>(opcode),
                                      " is not one that snapshots are made of"));
}

void PickleParser::run() {
  while (step(in_.byte())) {
  }
  if (stack_.size() != 1 || !marks_.empty())
    in_.refuse(str("expected one value at the end, got ", stack_.size()));
}

std::vector<Trace> read_pickle(TraceInput& input) {
  PickleShapes shapes(input);
  PickleParser(input, shapes).run();
  return shapes.finish();
}

}  // namespace taper::tools
