// Keeps the host's hands off device memory, which is the host's own here.
#pragma once

namespace taper::emulated {

// Note [Guarded access]
// Host code that follows a device pointer works here and dies on a real device. With
// TAPER_EMULATED_ACCESS=guarded device memory can be touched only while a kernel, a copy or a fill
// runs; anything else ends the process by SIGSEGV, after a text that says where the address lies.
// The pages are the process's, so this sees nothing while another thread's work runs.
bool access_is_guarded();
bool access_is_open();  // work on device memory runs, or nothing is guarded

// Held by work on device memory.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

// Implemented by memory.cpp and vmm.cpp: makes all that is allocated touchable, or not.
void open_blocks(bool touchable);
void open_mappings(bool touchable);

}  // namespace taper::emulated
