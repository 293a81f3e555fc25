// The face of the CUDA driver that our files see when g++ compiles them: virtual memory, no more.
#pragma once

#include <cuda_runtime.h>

// Values are those of CUDA 13.
enum CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
};

using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;

enum CUmemAllocationType { CU_MEM_ALLOCATION_TYPE_PINNED = 1 };
enum CUmemLocationType { CU_MEM_LOCATION_TYPE_DEVICE = 1 };
enum CUmemAccess_flags { CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3 };

struct CUmemLocation {
  CUmemLocationType type;
  int id;
};

struct CUmemAllocationProp {
  CUmemAllocationType type;
  CUmemLocation location;
};

struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
};

CUresult cuMemAddressReserve(CUdeviceptr* pointer,
                             size_t bytes,
                             size_t alignment,
                             CUdeviceptr wish,
                             unsigned long long flags);
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle,
                     size_t bytes,
                     const CUmemAllocationProp* properties,
                     unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr at,
                  size_t bytes,
                  size_t offset,
                  CUmemGenericAllocationHandle handle,
                  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr at,
                        size_t bytes,
                        const CUmemAccessDesc* description,
                        size_t count);
