// The CPU's one stream, and which stream is current.
#include "taper/core/stream.h"

#include <chrono>
#include <utility>

#include "taper/core/base/error.h"
#include "taper/core/stream_backend.h"

namespace taper {

thread_local constinit StreamId current_cuda_streams[kMaxDevices] = {};
constinit std::atomic<StreamObserver*> stream_observer{nullptr};

namespace {

void check_stream(const Stream& stream) {
  TAPER_CHECK(!stream.device().is_meta(), "the meta device has shapes but no streams");
  TAPER_CHECK(stream.device().is_cuda() || stream.id() == 0,
              "the CPU has one stream, number 0; got ", stream.id());
  if (stream.device().is_cuda()) cuda::check_stream(stream);
}

}  // namespace

void Stream::synchronize(SourceLoc loc) const {
  const Call call(loc);
  if (!device_.is_cuda()) return;
  cuda::synchronize(*this);
  if (auto* o = observer()) o->reached(*this);
}

bool Stream::query(SourceLoc loc) const {
  const Call call(loc);
  if (!device_.is_cuda()) return true;
  const bool done = cuda::is_done(*this);
  if (auto* o = observer(); o != nullptr && done) o->reached(*this);
  return done;
}

Stream make_stream(Device device, int priority, SourceLoc loc) {
  const Call call(loc);
  TAPER_CHECK(device.is_cuda(), device, " has one stream, which runs each call at once");
  return Stream(device, cuda::make_stream(device.index(), priority));
}

Stream current_stream(Device device, SourceLoc loc) {
  if (!device.is_cuda()) return Stream(device, 0);
  if (device.index() < kMaxDevices) return Stream(device, current_cuda_streams[device.index()]);
  const Call call(loc);
  cuda::check_stream(Stream(device));  // throws: there is no such device
  return Stream(device);
}

StreamGuard::StreamGuard(Stream stream, SourceLoc loc)
    : stream_(stream), before_(current_stream(stream.device(), loc)) {
  const Call call(loc);
  check_stream(stream);
  if (stream.device().is_cuda()) current_cuda_streams[stream.device().index()] = stream.id();
}

StreamGuard::~StreamGuard() {
  if (before_.device().is_cuda()) current_cuda_streams[before_.device().index()] = before_.id();
}

Event::~Event() {
  if (handle_ != nullptr) destroy();
}

void Event::destroy() noexcept {
  if (auto* o = observer()) o->forgotten({handle_});
  cuda::destroy_event(device_, handle_);
  handle_ = nullptr;
}

Event::Event(Event&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      device_(other.device_),
      timing_(other.timing_),
      time_(other.time_) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(device_, other.device_);
  std::swap(timing_, other.timing_);
  std::swap(time_, other.time_);
  return *this;
}

void Event::record(Stream stream, SourceLoc loc) {
  const Call call(loc);
  check_stream(stream);
  if (handle_ != nullptr && !(device_ == stream.device())) destroy();
  device_ = stream.device();
  if (!device_.is_cuda()) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    time_ = std::chrono::duration<double, std::milli>(now).count();
    return;
  }
  if (handle_ == nullptr) handle_ = cuda::make_event(device_, timing_);
  cuda::record(handle_, stream);
  if (auto* o = observer()) o->recorded({handle_}, stream);
}

void Event::block(Stream stream, SourceLoc loc) const {
  const Call call(loc);
  check_stream(stream);
  if (handle_ == nullptr) return;
  if (!stream.device().is_cuda()) return synchronize(loc);  // the CPU's stream runs here and now
  cuda::wait(stream, handle_);
  if (auto* o = observer()) o->blocked(stream, {handle_});
}

bool Event::query(SourceLoc loc) const {
  const Call call(loc);
  if (handle_ == nullptr) return true;
  const bool done = cuda::is_done(device_, handle_);
  if (auto* o = observer(); o != nullptr && done) o->reached({handle_});
  return done;
}

void Event::synchronize(SourceLoc loc) const {
  const Call call(loc);
  if (handle_ == nullptr) return;
  cuda::synchronize(device_, handle_);
  if (auto* o = observer()) o->reached({handle_});
}

double Event::elapsed_time(const Event& later, SourceLoc loc) const {
  const Call call(loc);
  TAPER_CHECK(timing_ && later.timing_, "elapsed_time: make both events with enable_timing");
  TAPER_CHECK(device_ == later.device_, "elapsed_time: one event is of ", device_,
              ", the other of ", later.device_);
  if (handle_ != nullptr && later.handle_ != nullptr)
    return cuda::milliseconds_between(device_, handle_, later.handle_);
  TAPER_CHECK(handle_ == nullptr && later.handle_ == nullptr && time_ > 0,
              "elapsed_time: an event was never recorded");
  return later.time_ - time_;
}

void wait_for(Stream waiter, Stream done, SourceLoc loc) {
  const Call call(loc);
  if (waiter == done || !done.device().is_cuda()) return;
  Event event;
  event.record(done, loc);
  event.block(waiter, loc);
}

}  // namespace taper
