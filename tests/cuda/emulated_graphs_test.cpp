// Stream capture of the emulated runtime: what is recorded, what is refused and breaks a capture.
#include <functional>
#include <thread>
#include <vector>

#include <cublas_v2.h>
#include <gtest/gtest.h>

#include "taper/cuda/launch.cuh"
#include "taper/tests/cuda/device_array.h"

namespace taper::cuda {
namespace {

__global__ void add_to(int* to, int n) {
  if (threadIdx.x == 0) *to += n;
}

class EmulatedGraphs : public testing::Test {
 protected:
  EmulatedGraphs() {
    for (cudaStream_t* s : {&a_, &b_}) cudaStreamCreateWithFlags(s, cudaStreamNonBlocking);
    for (cudaEvent_t* e : {&before_, &fork_, &join_}) cudaEventCreate(e);
    cudaEventRecord(before_, b_);
  }

  ~EmulatedGraphs() override {
    cudaGetLastError();
    for (cudaStream_t s : {a_, b_}) cudaStreamDestroy(s);
    for (cudaEvent_t e : {before_, fork_, join_}) cudaEventDestroy(e);
  }

  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    ASSERT_EQ(cudaStreamBeginCapture(a_, mode), cudaSuccess);
  }

  cudaError_t end() {
    cudaGraph_t graph = nullptr;
    const cudaError_t status = cudaStreamEndCapture(a_, &graph);
    EXPECT_EQ(graph == nullptr, status != cudaSuccess);
    if (graph != nullptr) cudaGraphDestroy(graph);
    return status;
  }

  cudaStreamCaptureStatus status(cudaStream_t stream) const {
    cudaStreamCaptureStatus out = cudaStreamCaptureStatusNone;
    cudaStreamGetCaptureInfo(stream, &out);
    return out;
  }

  void add(cudaStream_t stream, int n) { launch({1, 1, 0, stream}, add_to, number_.data(), n); }

  DeviceArray<int> number_{std::vector<int>{0}};
  cudaStream_t a_ = nullptr, b_ = nullptr;
  cudaEvent_t before_ = nullptr, fork_ = nullptr, join_ = nullptr;
};

TEST_F(EmulatedGraphs, WorkIsRecordedAndRunAtEachLaunch) {
  begin();
  EXPECT_EQ(status(a_), cudaStreamCaptureStatusActive);
  add(a_, 1);
  ASSERT_EQ(cudaEventRecord(fork_, a_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(b_, fork_), cudaSuccess);
  EXPECT_EQ(status(b_), cudaStreamCaptureStatusActive);
  add(b_, 10);
  ASSERT_EQ(cudaEventRecord(join_, b_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(a_, join_), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(a_, &graph), cudaSuccess);
  EXPECT_EQ(status(b_), cudaStreamCaptureStatusNone);
  EXPECT_EQ(number_.host()[0], 0);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(exec, b_), cudaSuccess);
  EXPECT_EQ(number_.host()[0], 33);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

// What no capture can hold: the error, and the capture is broken.
TEST_F(EmulatedGraphs, ForbiddenCallsBreakTheCapture) {
  int host = 0;
  void* block = nullptr;
  struct Case {
    const char* name;
    std::function<cudaError_t()> call;
    cudaError_t error;
    bool relaxed_too;
  };
  const cudaError_t kNo = cudaErrorStreamCaptureUnsupported;
  const Case cases[] = {
      {"synchronize", [&] { return cudaStreamSynchronize(a_); }, kNo, true},
      {"query", [&] { return cudaStreamQuery(a_); }, kNo, true},
      {"device", [&] { return cudaDeviceSynchronize(); }, kNo, true},
      {"pageable",
       [&] { return cudaMemcpyAsync(number_.data(), &host, 4, cudaMemcpyHostToDevice, a_); }, kNo,
       true},
      {"captured query", [&] { return cudaEventQuery(fork_); }, cudaErrorCapturedEvent, true},
      {"captured wait", [&] { return cudaEventSynchronize(fork_); }, cudaErrorCapturedEvent, true},
      {"isolation", [&] { return cudaStreamWaitEvent(a_, before_); },
       cudaErrorStreamCaptureIsolation, true},
      {"legacy", [&] { return cudaStreamWaitEvent(nullptr, fork_); },
       cudaErrorStreamCaptureImplicit, true},
      {"malloc", [&] { return cudaMalloc(&block, 16); }, kNo, false},
      {"copy", [&] { return cudaMemcpy(&host, number_.data(), 4, cudaMemcpyDeviceToHost); }, kNo,
       false},
      {"event query", [&] { return cudaEventQuery(before_); }, kNo, false},
      {"event wait", [&] { return cudaEventSynchronize(before_); }, kNo, false},
  };
  cudaDeviceSynchronize();
  for (const bool relaxed : {false, true}) {
    for (const Case& one : cases) {
      SCOPED_TRACE(one.name);
      begin(relaxed ? cudaStreamCaptureModeRelaxed : cudaStreamCaptureModeThreadLocal);
      ASSERT_EQ(cudaEventRecord(fork_, a_), cudaSuccess);
      const bool breaks = one.relaxed_too || !relaxed;
      EXPECT_EQ(one.call(), breaks ? one.error : cudaSuccess);
      EXPECT_EQ(status(a_) == cudaStreamCaptureStatusInvalidated, breaks);
      if (breaks) {
        EXPECT_THROW(add(a_, 1), Error);
      }
      EXPECT_EQ(end(), breaks ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
      if (block != nullptr) cudaFree(std::exchange(block, nullptr));
    }
  }
  EXPECT_EQ(number_.host()[0], 0);
}

TEST_F(EmulatedGraphs, ModesSayWhoseUnsafeCallsAreForbidden) {
  const auto asks_event = [&] { return cudaEventQuery(before_); };
  const auto elsewhere = [&](const std::function<cudaError_t()>& call) {
    cudaError_t out = cudaSuccess;
    std::thread([&] { out = call(); }).join();
    return out;
  };
  cudaDeviceSynchronize();
  begin(cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(elsewhere(asks_event), cudaSuccess);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  EXPECT_EQ(asks_event(), cudaSuccess);
  cudaThreadExchangeStreamCaptureMode(&mode);
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(end(), cudaSuccess);
  begin(cudaStreamCaptureModeGlobal);
  EXPECT_EQ(elsewhere(asks_event), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(EmulatedGraphs, ACaptureEndsWhereAndAsItBegan) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaErrorIllegalState);
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(a_, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  cudaEventRecord(fork_, a_);
  cudaStreamWaitEvent(b_, fork_);
  EXPECT_EQ(cudaStreamEndCapture(b_, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  begin();
  std::thread([&] {
    EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  begin();
  cudaEventRecord(fork_, a_);
  cudaStreamWaitEvent(b_, fork_);
  add(b_, 1);
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(cudaEventQuery(fork_), cudaErrorCapturedEvent);  // until it is recorded again
  EXPECT_EQ(cudaStreamWaitEvent(a_, fork_), cudaErrorCapturedEvent);
  cudaEventRecord(fork_, a_);
  EXPECT_EQ(cudaEventSynchronize(fork_), cudaSuccess);
}

TEST_F(EmulatedGraphs, TwoCapturesDoNotMerge) {
  begin();
  ASSERT_EQ(cudaStreamBeginCapture(b_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  cudaEventRecord(fork_, b_);
  EXPECT_EQ(cudaStreamWaitEvent(a_, fork_), cudaErrorStreamCaptureMerge);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(b_, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(EmulatedGraphs, AHandleOfCublasIsNotMadeMeanwhile) {
  cublasHandle_t handle = nullptr;
  begin();
  EXPECT_EQ(cublasCreate(&handle), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

}  // namespace
}  // namespace taper::cuda
