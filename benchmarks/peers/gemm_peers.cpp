// OpenBLAS's and oneDNN's side of the gemm group: taper_peer_gemm openblas|onednn. Reads products'
// names, see product.h, and writes "name<TAB>seconds" lines.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <vector>

#include <cblas.h>
#include <dnnl.hpp>
#include <sys/mman.h>

#include "taper/benchmarks/bench.h"
#include "taper/benchmarks/product.h"

namespace {

using bench::Product;

// Memory in huge pages, as our allocator gives it.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_((bytes + kPage - 1) / kPage * kPage + kPage) {
    base_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) std::abort();
    madvise(base_, bytes_, MADV_HUGEPAGE);
    const auto at = (reinterpret_cast<std::uintptr_t>(base_) + kPage - 1) / kPage * kPage;
    data_ = reinterpret_cast<void*>(at);
  }
  ~Buffer() { munmap(base_, bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }

  float* floats() const { return static_cast<float*>(data_); }

  // Numbers between 0 and 1 whose upper halves are bf16 of the same kind.
  void fill(std::size_t floats) const {
    std::uint32_t x = 1;
    for (std::size_t i = 0; i < floats; ++i) {
      x = x * 1664525u + 1013904223u;
      const std::uint32_t half = 0x3f00u | (x >> 24);
      static_cast<std::uint32_t*>(data_)[i] = half << 16 | half;
    }
  }

 private:
  static constexpr std::size_t kPage = std::size_t{2} << 20;
  std::size_t bytes_;
  void *base_, *data_;
};

struct Operands {
  Buffer a, b, c;

  explicit Operands(const Product& p)
      : a(count(p, p.m, p.k) * 4), b(count(p, p.k, p.n) * 4), c(count(p, p.m, p.n) * 4) {
    a.fill(count(p, p.m, p.k));
    b.fill(count(p, p.k, p.n));
    c.fill(count(p, p.m, p.n));
  }

  static std::size_t count(const Product& p, long rows, long columns) {
    return static_cast<std::size_t>(p.batch * rows * columns);
  }
};

double openblas(const Product& p, const Operands& x) {
  if (p.bf16) return std::nan("");
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  const int lda = p.a_transposed ? m : k, ldb = p.b_transposed ? k : n;
  return bench::seconds_in_turn([&] {
    for (long i = 0; i < p.batch; ++i) {
      cblas_sgemm(CblasRowMajor, p.a_transposed ? CblasTrans : CblasNoTrans,
                  p.b_transposed ? CblasTrans : CblasNoTrans, m, n, k, 1,
                  x.a.floats() + i * p.m * p.k, lda, x.b.floats() + i * p.k * p.n, ldb, 0,
                  x.c.floats() + i * p.m * p.n, n);
    }
  });
}

// The matmul primitive, on operands as they lie.
double onednn_matmul(const Product& p, const Operands& x) {
  using Memory = dnnl::memory;
  using Tag = Memory::format_tag;
  const auto type = p.bf16 ? Memory::data_type::bf16 : Memory::data_type::f32;
  const Memory::desc a({p.batch, p.m, p.k}, type, p.a_transposed ? Tag::acb : Tag::abc);
  const Memory::desc b({p.batch, p.k, p.n}, type, p.b_transposed ? Tag::acb : Tag::abc);
  const Memory::desc c({p.batch, p.m, p.n}, type, Tag::abc);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const dnnl::matmul primitive(dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), engine));
  const Memory ma(a, engine, x.a.data()), mb(b, engine, x.b.data()), mc(c, engine, x.c.data());
  return bench::seconds_in_turn([&] {
    primitive.execute(stream, {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, mc}});
    stream.wait();
  });
}

// The better of its two ways.
double onednn(const Product& p, const Operands& x) {
  const double matmul = onednn_matmul(p, x);
  if (p.bf16) return matmul;
  const double sgemm = bench::seconds_in_turn([&] {
    for (long i = 0; i < p.batch; ++i) {
      dnnl_sgemm(p.a_transposed ? 'T' : 'N', p.b_transposed ? 'T' : 'N', p.m, p.n, p.k, 1,
                 x.a.floats() + i * p.m * p.k, p.a_transposed ? p.m : p.k,
                 x.b.floats() + i * p.k * p.n, p.b_transposed ? p.k : p.n, 0,
                 x.c.floats() + i * p.m * p.n, p.n);
    }
  });
  return std::min(matmul, sgemm);
}

}  // namespace

int main(int argc, char** argv) {
  const bool blas = argc > 1 && std::string(argv[1]) == "openblas";
  std::string name;
  while (std::getline(std::cin, name)) {
    Product p;
    double took = std::nan("");
    if (bench::parse_product(name, p)) {
      const Operands x(p);
      took = blas ? openblas(p, x) : onednn(p, x);
    }
    std::printf("%s\t%.9g\n", name.c_str(), took);
    std::fflush(stdout);
  }
}
