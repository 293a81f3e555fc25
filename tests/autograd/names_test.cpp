// LibTorch's names and spellings: that scripts written for it compile, and mean the same.
#include <sstream>

#include "taper/taper.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

using Shape = std::vector<std::int64_t>;

template <class T> std::string text(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

TEST(Names, EnumeratorsOfLibTorch) {
  EXPECT_EQ(ScalarType::Double, kFloat64);
  EXPECT_EQ(ScalarType::Float, kFloat32);
  EXPECT_EQ(ScalarType::Half, kFloat16);
  EXPECT_EQ(ScalarType::BFloat16, kBFloat16);
  EXPECT_EQ(ScalarType::Long, kInt64);
  EXPECT_EQ(ScalarType::Int, kInt32);
  EXPECT_EQ(ScalarType::Byte, kUInt8);
  EXPECT_EQ(ScalarType::Bool, kBool);
  EXPECT_EQ(DeviceType::CPU, kCPU);
  EXPECT_EQ(DeviceType::CUDA, kCUDA);
  EXPECT_EQ(DeviceType::Meta, kMeta);
  const Tensor x = ones({2, 3, 4, 5}).contiguous(MemoryFormat::ChannelsLast);
  EXPECT_EQ(x.strides().vec(), (Shape{60, 1, 15, 3}));
  EXPECT_EQ(x.clone(MemoryFormat::Preserve).strides().vec(), (Shape{60, 1, 15, 3}));
  EXPECT_EQ(x.contiguous(MemoryFormat::Contiguous).strides().vec(), (Shape{60, 20, 5, 1}));
}

// The texts are LibTorch 1.13's, but that there is no layout to leave unset.
TEST(Names, TypesDevicesSizesAndOptionsArePrinted) {
  const Tensor x = ones({2, 3});
  EXPECT_EQ(text(x.dtype()), "float");
  EXPECT_EQ(text(kFloat64), "double");
  EXPECT_EQ(text(kFloat16), "c10::Half");
  EXPECT_EQ(text(kBFloat16), "c10::BFloat16");
  EXPECT_EQ(text(kInt64), "long int");
  EXPECT_EQ(text(kInt32), "int");
  EXPECT_EQ(text(kUInt8), "unsigned char");
  EXPECT_EQ(text(kBool), "bool");
  EXPECT_EQ(text(x.device()), "cpu");
  EXPECT_EQ(text(Device(kCUDA, 1)), "cuda:1");
  EXPECT_EQ(text(kCUDA), "cuda");
  EXPECT_EQ(text(x.sizes()), "[2, 3]");
  EXPECT_EQ(text(ones({}).sizes()), "[]");
  EXPECT_EQ(text(x.options()),
            "TensorOptions(dtype=float, device=cpu, layout=Strided, requires_grad=false (default), "
            "pinned_memory=false (default), memory_format=(nullopt))");
  EXPECT_EQ(text(TensorOptions().requires_grad(true).memory_format(MemoryFormat::ChannelsLast)),
            "TensorOptions(dtype=float (default), device=cpu (default), layout=Strided, "
            "requires_grad=true, pinned_memory=false (default), memory_format=ChannelsLast)");
}

// LibTorch 1.13 gives these strides.
TEST(Names, JoinedChannelsLastStaysChannelsLast) {
  for (const Device device : {Device(kCPU), Device(kMeta)}) {
    const Tensor plain = ones({2, 3, 4, 5}, device);
    const Tensor last = plain.contiguous(MemoryFormat::ChannelsLast);
    EXPECT_EQ(cat({last, last}, 1).strides().vec(), (Shape{120, 1, 30, 6}));
    EXPECT_EQ(cat({last, last.narrow(1, 0, 1).contiguous()}, 1).strides().vec(),
              (Shape{80, 1, 20, 4}));
    EXPECT_EQ(cat({last, plain}, 1).strides().vec(), (Shape{120, 20, 5, 1}));
    EXPECT_EQ(cat({plain, plain}, 1).strides().vec(), (Shape{120, 20, 5, 1}));
    EXPECT_EQ(cat({ones({3, 2}, device).t(), ones({3, 2}, device).t()}).strides().vec(),
              (Shape{3, 1}));
  }
  const Tensor a = sample({2, 3, 4, 5}, 1), b = sample({2, 2, 4, 5}, 2);
  const Tensor joined =
      cat({a.contiguous(MemoryFormat::ChannelsLast), b.contiguous(MemoryFormat::ChannelsLast)}, 1);
  EXPECT_TRUE(joined.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_EQ(values(joined), values(cat({a, b}, 1)));
}

}  // namespace
}  // namespace taper::testing
