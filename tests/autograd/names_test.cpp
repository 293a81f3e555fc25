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

TEST(Names, ConversionsToTheTypeOfAnother) {
  const Tensor x = tensor({1.5, -2.5});
  const Tensor like = ones({3}, kInt32);
  EXPECT_EQ(x.to(like).dtype(), kInt32);
  EXPECT_EQ(values(x.to(like)), (Numbers{1, -2}));
  EXPECT_TRUE(x.to(x).is_same(x));
  EXPECT_FALSE(x.to(x, false, true).is_same(x));
  EXPECT_TRUE(x.to(empty({1}, kMeta)).is_meta());
  EXPECT_EQ(x.toType(kFloat64).dtype(), kFloat64);
  EXPECT_EQ(Scalar(2.75).toFloat(), 2.75F);
  EXPECT_EQ(Scalar(2.75).toDouble(), 2.75);
  EXPECT_EQ(Scalar(2.75).toInt(), 2);
  EXPECT_EQ(Scalar(std::int64_t{1} << 40).toLong(), std::int64_t{1} << 40);
  EXPECT_TRUE(Scalar(0.5).toBool());
  EXPECT_FALSE(Scalar(0).toBool());
}

TEST(Names, NewTensorsTakeDtypeAndDevice) {
  const Tensor x = ones({2}, kInt64);
  EXPECT_EQ(x.new_full({1}, 2.7).dtype(), kInt64);
  EXPECT_EQ(values(x.new_full({1}, 2.7)), Numbers{2});
  EXPECT_EQ(values(x.new_zeros({2, 1})), (Numbers{0, 0}));
  EXPECT_EQ(values(x.new_ones({3})), (Numbers{1, 1, 1}));
  EXPECT_EQ(x.new_ones({3}).dtype(), kInt64);
  EXPECT_EQ(x.new_zeros({3}, kFloat64).dtype(), kFloat64);
  EXPECT_TRUE(x.to(kMeta).new_zeros({3}).is_meta());
  EXPECT_EQ(x.to(kMeta).new_empty({3, 1}).sizes().vec(), (Shape{3, 1}));
  EXPECT_EQ(x.to(kMeta).new_empty({3}, kFloat16).dtype(), kFloat16);
}

TEST(Names, OneElementAsABool) {
  EXPECT_EQ(ones({2, 3}).nelement(), 6);
  EXPECT_TRUE(tensor(0.5).is_nonzero());
  EXPECT_TRUE(tensor(std::nan("")).is_nonzero());
  EXPECT_FALSE(tensor({0}).is_nonzero());
  expect_error([] { (void)ones({2}).is_nonzero(); }, {"is_nonzero", "(2)", "names_test.cpp"});
  expect_error([] { (void)ones({0}).is_nonzero(); }, {"is_nonzero", "(0)"});
}

TEST(Names, MethodsInPlace) {
  const Tensor x = tensor({-1.5, 2.5, 0.25}, kFloat64);
  const auto after = [&](auto f) {
    const Tensor t = x.clone();
    EXPECT_TRUE(f(t).is_same(t));
    EXPECT_EQ(t.version(), x.clone().version() + 1);
    return t;
  };
  expect_close(after([](const Tensor& t) { return t.sin_(); }), x.sin());
  expect_close(after([](const Tensor& t) { return t.cos_(); }), x.cos());
  expect_close(after([](const Tensor& t) { return t.rsqrt_(); }), x.rsqrt());
  expect_close(after([](const Tensor& t) { return t.reciprocal_(); }), 1 / x);
  EXPECT_EQ(values(after([](const Tensor& t) { return t.square_(); })),
            (Numbers{2.25, 6.25, 0.0625}));
  EXPECT_EQ(values(after([](const Tensor& t) { return t.ceil_(); })), (Numbers{-1, 3, 1}));
  EXPECT_EQ(values(after([](const Tensor& t) { return t.trunc_(); })), (Numbers{-1, 2, 0}));
  EXPECT_EQ(values(after([](const Tensor& t) { return t.clamp_min_(0.5); })),
            (Numbers{0.5, 2.5, 0.5}));
  EXPECT_EQ(values(after([](const Tensor& t) { return t.clamp_max_(0.5); })),
            (Numbers{-1.5, 0.5, 0.25}));
  EXPECT_EQ(values(after([](const Tensor& t) { return relu_(t); })), (Numbers{0, 2.5, 0.25}));
}

TEST(Names, Joining) {
  const Tensor a = tensor({1, 2}), b = tensor({3, 4});
  const Tensor rows = tensor({{1, 2}, {3, 4}}), columns = tensor({{5}, {6}});
  EXPECT_EQ(values(concat({a, b})), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(values(concat({rows, columns}, 1)), (Numbers{1, 2, 5, 3, 4, 6}));
  EXPECT_EQ(values(hstack({a, tensor(3)})), (Numbers{1, 2, 3}));
  EXPECT_EQ(values(hstack({rows, columns})), (Numbers{1, 2, 5, 3, 4, 6}));
  EXPECT_EQ(vstack({a, rows}).sizes().vec(), (Shape{3, 2}));
  EXPECT_EQ(values(vstack({a, rows})), (Numbers{1, 2, 1, 2, 3, 4}));
  EXPECT_EQ(vstack({tensor(1), tensor(2)}).sizes().vec(), (Shape{2, 1}));
  expect_error([&] { (void)hstack(std::vector<Tensor>()); }, {"hstack", "names_test.cpp"});
  expect_error([&] { (void)vstack({a, columns}); }, {"vstack", "(2, 1)", "names_test.cpp"});
}

TEST(Names, Parts) {
  const Tensor x = arange(6);
  EXPECT_EQ(values(x.split_with_sizes({1, 2, 3})[2]), (Numbers{3, 4, 5}));
  EXPECT_EQ(values(split_with_sizes(x.view({2, 3}), {1, 2}, 1)[1]), (Numbers{1, 2, 4, 5}));
  const Tensor base = leaf(tensor({1., 2., 3.}, kFloat64)), put = leaf(tensor(9., kFloat64));
  const Tensor y = base.index_put({1}, put);
  EXPECT_EQ(values(y), (Numbers{1, 9, 3}));
  EXPECT_EQ(values(base), (Numbers{1, 2, 3}));
  y.sum().backward();
  EXPECT_EQ(values(base.grad()), (Numbers{1, 0, 1}));
  EXPECT_EQ(values(put.grad()), Numbers{1});
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

TEST(Names, LoadersKeepTheOrder) {
  EXPECT_TRUE(data::DataLoaderOptions().enforce_ordering(true).enforce_ordering());
  expect_error([] { data::DataLoaderOptions().enforce_ordering(false); },
               {"enforce_ordering", "order is always kept"});
}

TEST(Names, MessageOfAnError) {
  try {
    (void)ones({2}).view({3});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.msg(), e.message());
    EXPECT_EQ(e.msg().find("names_test.cpp"), std::string::npos);
    EXPECT_FALSE(e.msg().empty());
  }
}

}  // namespace
}  // namespace taper::testing
