// Holds every kernel's operands against those of kernels before it that nothing orders with it.
#include "taper/autograd/lens/race.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "taper/autograd/lens/access_map.h"
#include "taper/autograd/lens/stream_order.h"
#include "taper/core/base/log.h"
#include "taper/core/stream_backend.h"

// Note [What a race checker keeps]
// An access is kept while something may yet come that is not ordered behind it. It goes
// - when the host knows that it is done: all that is launched later is ordered behind it;
// - when a later one that is ordered behind it covers its bytes, and writes, or both only read:
//   what is not ordered behind the first is not ordered behind the second either, and meets that.
// So on one stream there is one access for each place in memory, however long the program runs.
namespace taper::lens {
namespace {

constexpr std::size_t kMostKept = std::size_t{1} << 18, kMostFound = 256;

// Of the kernel that this thread is in.
thread_local constinit StreamOrder::Tick tick_of_launch = 0;

std::atomic<bool> one_lives{false};

std::string who(const Access& a) {
  std::string text = a.op;
  if (a.rule != nullptr) text += str(" in the backward of ", a.rule);
  if (a.loc.known()) text += str(" at ", to_string(a.loc));
  if (a.scope != 0) text += str(" (", scope_name(a.scope), ")");
  return text;
}

std::string where(const Access& a, bool with_device) {
  if (!a.where.device().is_cuda()) return "on the host";
  return str("on ", with_device ? str(a.where.device(), " ") : "", "stream ", a.where.id());
}

// "mul at train.cpp:12 in main on cuda:0 stream 1 writes f32 (64, 128), which ..."
std::string told(const Access& now, const Access& then) {
  const bool one_device = now.where.device() == then.where.device();
  std::string text = str(who(now), " ", where(now, true), now.writes ? " writes " : " reads ",
                         now.dtype, " ", now.sizes);
  const bool same = now.dtype == then.dtype && now.bytes.begin == then.bytes.begin &&
                    now.bytes.end == then.bytes.end;
  text += str(same ? ", which " : ", in memory that ", who(then), " ", where(then, !one_device),
              then.writes ? " writes" : " reads");
  if (!same) text += str(" as ", then.dtype, " ", then.sizes);
  text += "; nothing orders them: ";
  if (!now.where.device().is_cuda())
    return text + str("wait for stream ", then.where.id(), " first, by an Event or synchronize()");
  text += str("record an Event on ", where(then, !one_device).substr(3), " and block ",
              where(now, !one_device).substr(3), " on it");
  if (!same) {
    text += str(", or, if the memory was freed in between, call record_stream() for stream ",
                then.where.id(), " before that");
  }
  return text;
}

bool same_line(const Access& a, const Access& b) {
  return a.writes == b.writes && a.op == b.op && a.rule == b.rule && a.where == b.where &&
         a.loc.file == b.loc.file && a.loc.line == b.loc.line;
}

struct Pair {
  Access now, then;
};

}  // namespace

struct RaceCheck::State {
  Found found;
  StreamOrder& order = StreamOrder::get();
  mutable std::mutex mutex;
  AccessMap kept;
  std::uint64_t serial = 0;
  std::size_t swept = 1024;  // how many were kept after the last sweep, or so
  std::vector<Pair> pairs;

  std::optional<Pair> meet_before(const Access& now);
  void keep(Access& now);
  void sweep();
};

// The first race of the access with what is kept. New ones are listed.
std::optional<Pair> RaceCheck::State::meet_before(const Access& now) {
  std::optional<Pair> first;
  kept.visit(now.bytes.begin, now.bytes.end, [&](const Access& then) {
    if (order.is_before(then.stream, then.tick, StreamOrder::kHost)) return true;
    if (!(now.writes || then.writes) || order.is_before(then.stream, then.tick, now.stream) ||
        !meet(now.bytes, then.bytes)) {
      return false;
    }
    if (!first) first = Pair{now, then};
    const bool known = std::any_of(pairs.begin(), pairs.end(), [&](const Pair& p) {
      return same_line(p.now, now) && same_line(p.then, then);
    });
    if (known || pairs.size() == kMostFound) return false;
    pairs.push_back({now, then});
    if (found == Found::kReport) log(LogLevel::kWarning, "race: ", told(now, then));
    return false;
  });
  return first;
}

void RaceCheck::State::keep(Access& now) {
  now.serial = ++serial;
  kept.visit(now.bytes.begin, now.bytes.end, [&](const Access& then) {
    return (now.writes || !then.writes) && covers(now.bytes, then.bytes) &&
           order.is_before(then.stream, then.tick, now.stream);
  });
  kept.add(now);
  if (kept.size() > 2 * swept) sweep();
}

void RaceCheck::State::sweep() {
  kept.forget_if(
      [&](const Access& a) { return order.is_before(a.stream, a.tick, StreamOrder::kHost); });
  if (kept.size() > kMostKept) {  // the older half goes, whatever comes
    std::vector<std::uint64_t> serials;
    kept.forget_if([&](const Access& a) {
      serials.push_back(a.serial);
      return false;
    });
    const auto middle = serials.begin() + static_cast<std::ptrdiff_t>(serials.size() / 2);
    std::nth_element(serials.begin(), middle, serials.end());
    kept.forget_if([&](const Access& a) { return a.serial < *middle; });
  }
  swept = std::clamp<std::size_t>(kept.size(), 1024, kMostKept / 2);
}

RaceCheck::RaceCheck(Found found) : state_(std::make_unique<State>()) {
  TAPER_CHECK(!one_lives.exchange(true), "RaceCheck: there is one already; it sees all threads");
  state_->found = found;
  state_->order.begin();
  install(*this);
}

RaceCheck::~RaceCheck() {
  remove(*this);
  state_->order.end();
  one_lives.store(false);
}

std::string RaceCheck::report() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->pairs.empty()) return "no race so far";
  std::string text;
  for (const Pair& pair : state_->pairs) {
    if (!text.empty()) text += "\n";
    text += told(pair.now, pair.then);
  }
  return text;
}

std::size_t RaceCheck::count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->pairs.size();
}

std::size_t RaceCheck::kept() const {
  const std::lock_guard lock(state_->mutex);
  return state_->kept.size();
}

namespace {

// One number of the host goes to the device as an argument of the launch, see cuda/transfer.cpp:
// the host reads it, and has read it when the call returns.
bool is_argument(const KernelCall& call, const View& view, bool writes) {
  return call.exec.device.is_cuda() && !call.exec.non_blocking && !writes &&
         call.slot == &cuda_kernels().copy && view.layout->numel() == 1 &&
         cuda::lies_on_host(view.data);
}

}  // namespace

// The launch gets its tick before, so that waiting for it, which a blocking copy does itself, is
// seen as that; it is judged after, when the waits that it made itself have been seen.
void RaceCheck::before(const KernelCall& call) {
  if (!call.exec.device.is_cuda()) return;
  StreamOrder& order = state_->order;
  tick_of_launch = order.launch(order.number_of(Stream(call.exec.device, call.exec.stream)));
}

void RaceCheck::after(const KernelCall& call) {
  if (call.exec.device.is_meta()) return;
  const std::lock_guard lock(state_->mutex);
  const bool on_host = call.exec.device.is_cpu();
  if (on_host && state_->kept.size() == 0) return;
  Access now;
  now.where = Stream(call.exec.device, call.exec.stream);
  now.stream = state_->order.number_of(now.where);
  now.tick = on_host ? 0 : tick_of_launch;
  now.op = call_site.op != nullptr ? call_site.op : slot_name(call.slot);
  now.rule = call_site.entry;
  now.loc = call_site.loc();
  now.scope = call_site.scope;
  std::vector<Access> accesses;
  const auto note = [&](const View& view, bool writes) {
    now.bytes = footprint(view);
    if (now.bytes.begin == now.bytes.end) return;
    now.writes = writes;
    now.dtype = view.dtype;
    now.sizes.clear();
    for (const std::int64_t size : view.layout->shape()) now.sizes.push_back(size);
    accesses.push_back(now);
    if (is_argument(call, view, writes)) accesses.back().stream = StreamOrder::kHost;
  };
  for (const View* view : call.reads) note(*view, false);
  for (const View* view : call.writes) note(*view, true);
  std::optional<Pair> race;
  for (const Access& access : accesses) {
    const std::optional<Pair> met = state_->meet_before(access);
    if (!race) race = met;
  }
  if (!on_host) {  // what the host has done is before whatever it launches
    for (Access& access : accesses) {
      if (access.stream != StreamOrder::kHost) state_->keep(access);
    }
  }
  if (race && state_->found == Found::kThrow)
    throw Error(told(race->now, race->then), "race", race->now.loc, scope_name(race->now.scope));
}

}  // namespace taper::lens
