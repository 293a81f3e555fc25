// 2-d convolution and its gradients, by packing pieces of the images straight into the tiles of the
// matrix product.
#pragma once
#include "taper/core/exec.h"
#include "taper/cpu/gemm_pack.h"
#include "taper/cpu/parallel.h"

// Note [Convolution as correlation]
// Output channel m at (y, x) is the sum over taps t and input channels c, in that order, of
//   weight(m, c, t) * source(c, y * step + t.dy, x * step + t.dx),
// one chain of fmas that starts as the bias; outside its plane the source is 0. That is conv2d with
// one tap for each place of the kernel. It is also the gradient of the input: those pixels of dx
// that leave the same remainder by the stride meet the same taps, at steps of 1 in grad. So both
// are one loop, each output is written once, and no bit depends on layout or threads.
namespace taper::cpu {
inline namespace TAPER_ISA {
namespace gemm {

inline constexpr Index kDepth = 256;  // k of one block: a panel of B stays in the first cache
inline constexpr Index kPieceRows =
    192;  // output channels that one packed piece serves; whole tiles
inline constexpr Index kBlockSlivers = 4;  // neighbouring columns of tiles in one task

template <class E> using Wide = std::conditional_t<sizeof(E) == 2, float, E>;

// (N, C, H, W) in any strides, in elements.
template <class E> struct Images {
  E* data;
  Index image, channel, row, col;
};

template <class E> Images<E> images_of(const View& view) {
  const std::int64_t* s = view.layout->strides;
  return {view.as<E>(), s[0], s[1], s[2], s[3]};
}

struct Tap {
  Index dy, dx;
  Index weight;  // offset into the weight tensor
};

template <class E> struct Correlation {
  Index batch, groups, outputs, inputs;  // channels are those of one group
  Index out_h, out_w, src_h, src_w, step_h, step_w;
  Images<E> out;
  Images<const E> src;
  const Tap* taps;
  Index tap_count;
  const E* weight;
  Index weight_group, weight_output, weight_input;  // strides
  const E* bias;
  Index bias_step;

  Index depth() const { return tap_count * inputs; }
};

// Neighbouring columns of a tile that lie in one row of the output.
struct Segment {
  Index lane, n, y, x;
};

template <class E> class Correlate {
 public:
  Correlate(const Exec& exec, const Correlation<E>& c) : c_(c) {
    panels_ = (c.outputs + kTileRows - 1) / kTileRows;
    const Index bytes = c.groups * panels_ * kTileRows * c.depth() * Index{sizeof(T)};
    weights_ = static_cast<T*>(exec.scratch(static_cast<std::size_t>(bytes)));
  }

  void run() {
    parallel_for(c_.groups * panels_, grain_of(kTileRows * c_.depth()),
                 [&](Index begin, Index end) {
                   for (Index i = begin; i < end; ++i) pack_weights(i / panels_, i % panels_);
                 });
    const Index slivers = (c_.out_h * c_.out_w + kCols - 1) / kCols;
    const Index blocks = (slivers + kBlockSlivers - 1) / kBlockSlivers;
    const Index work = kCols * kBlockSlivers * c_.depth() * (1 + c_.outputs / 8);
    parallel_for(c_.batch * c_.groups * blocks, grain_of(work), [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const Index plane = i / blocks, first = i % blocks * kBlockSlivers;
        const Index last = first + kBlockSlivers < slivers ? first + kBlockSlivers : slivers;
        for (Index s = first; s < last; ++s)
          sliver(plane / c_.groups, plane % c_.groups, s * kCols);
      }
    });
  }

 private:
  using T = Wide<E>;
  static constexpr Index kCols = kTileCols<T>;

  T* weights_at(Index group, Index panel, Index k) const {
    return weights_ + ((group * panels_ + panel) * c_.depth() + k) * kTileRows;
  }

  void pack_weights(Index group, Index panel) const {
    T* to = weights_at(group, panel, 0);
    const E* from = c_.weight + group * c_.weight_group;
    for (Index t = 0; t < c_.tap_count; ++t) {
      for (Index c = 0; c < c_.inputs; ++c) {
        for (Index r = 0; r < kTileRows; ++r) {
          const Index m = panel * kTileRows + r;
          const E* w = from + c_.taps[t].weight + m * c_.weight_output + c * c_.weight_input;
          *to++ = m < c_.outputs ? static_cast<T>(*w) : T(0);
        }
      }
    }
  }

  // All outputs of the columns [p, p + kCols) of one plane, row by row of its pixels.
  void sliver(Index image, Index group, Index p) const {
    alignas(64) T right[std::size_t{kDepth * kCols}];
    alignas(64) T tile[std::size_t{kPieceRows * kCols}];
    Segment segments[std::size_t{kCols}];
    const Index count = cut(p, segments);
    const E* src = c_.src.data + image * c_.src.image + group * c_.inputs * c_.src.channel;
    E* out = c_.out.data + image * c_.out.image + group * c_.outputs * c_.out.channel;
    for (Index m0 = 0; m0 < c_.outputs; m0 += kPieceRows) {
      const Index rows = c_.outputs - m0 < kPieceRows ? c_.outputs - m0 : kPieceRows;
      start(tile, group * c_.outputs + m0, rows);
      for (Index k = 0; k < c_.depth(); k += kDepth) {
        const Index depth = c_.depth() - k < kDepth ? c_.depth() - k : kDepth;
        for (Index s = 0; s < count; ++s) pack(right, src, segments[s], k, depth);
        for (Index i = 0; i < rows; i += kTileRows) {
          const T* left = weights_at(group, (m0 + i) / kTileRows, k);
          const Index height = rows - i < kTileRows ? rows - i : kTileRows;
          multiply_rows<T, kTileVectors>(height, depth, {left, 1, kTileRows}, right, kCols,
                                         tile + i * kCols, kCols, true);
        }
      }
      for (Index s = 0; s < count; ++s) {
        finish(tile, out + m0 * c_.out.channel, segments[s], rows);
      }
    }
  }

  Index cut(Index p, Segment* segments) const {
    Index count = 0;
    const Index end = c_.out_h * c_.out_w < p + kCols ? c_.out_h * c_.out_w : p + kCols;
    for (Index q = p; q < end;) {
      const Index x = q % c_.out_w;
      const Index n = c_.out_w - x < end - q ? c_.out_w - x : end - q;
      segments[count++] = {q - p, n, q / c_.out_w, x};
      q += n;
    }
    return count;
  }

  void start(T* tile, Index channel, Index rows) const {
    for (Index r = 0; r < rows; ++r) {
      const T x = c_.bias == nullptr ? T(0) : static_cast<T>(c_.bias[(channel + r) * c_.bias_step]);
      for (Index i = 0; i < kCols; ++i) tile[r * kCols + i] = x;
    }
  }

  void finish(const T* tile, E* out, const Segment& s, Index rows) const {
    E* to = out + s.y * c_.out.row + s.x * c_.out.col;
    for (Index r = 0; r < rows; ++r, to += c_.out.channel) {
      const T* from = tile + r * kCols + s.lane;
      if (c_.out.col == 1) {
        for (Index i = 0; i < s.n; ++i) to[i] = static_cast<E>(from[i]);
      } else {
        for (Index i = 0; i < s.n; ++i) to[i * c_.out.col] = static_cast<E>(from[i]);
      }
    }
  }

  // The segment's lanes of a panel (depth, kCols) whose first row is row k of the product.
  void pack(T* panel, const E* src, const Segment& s, Index k, Index depth) const {
    for (Index done = 0; done < depth;) {
      const Index c = (k + done) % c_.inputs;
      const Index n = c_.inputs - c < depth - done ? c_.inputs - c : depth - done;
      const Tap& tap = c_.taps[(k + done) / c_.inputs];
      pack_tap(panel + done * kCols + s.lane, src + c * c_.src.channel, s, tap, n);
      done += n;
    }
  }

  // n channels of one tap. Lanes [low, high) lie inside the plane.
  void pack_tap(T* to, const E* src, const Segment& s, const Tap& tap, Index n) const {
    const Index y = s.y * c_.step_h + tap.dy, x = s.x * c_.step_w + tap.dx;
    Index low = 0, high = 0;
    if (y >= 0 && y < c_.src_h) {
      low = x >= 0 ? 0 : (-x + c_.step_w - 1) / c_.step_w;
      high = x >= c_.src_w ? 0 : (c_.src_w - x + c_.step_w - 1) / c_.step_w;
      low = low < s.n ? low : s.n;
      high = high < low ? low : high < s.n ? high : s.n;
    }
    if (low > 0 || high < s.n) {
      for (Index c = 0; c < n; ++c) {
        for (Index i = 0; i < low; ++i) to[c * kCols + i] = T(0);
        for (Index i = high; i < s.n; ++i) to[c * kCols + i] = T(0);
      }
    }
    if (high == low) return;
    const Index step = c_.step_w * c_.src.col;
    const E* from = src + y * c_.src.row + x * c_.src.col + low * step;
    if (c_.src.channel == 1) copy_channels(to + low, from, step, high - low, n);
    else copy_columns(to + low, from, step, high - low, n);
  }

  // Channels lie apart, columns `step` apart.
  void copy_columns(T* to, const E* from, Index step, Index cols, Index n) const {
    if (step == 1 && cols == kCols) return copy_lanes<kCols>(to, from, n);
    Index i = 0;
    for (; step == 1 && i + 8 <= cols; i += 8) copy_lanes<8>(to + i, from + i, n);
    for (; step == 1 && i + 4 <= cols; i += 4) copy_lanes<4>(to + i, from + i, n);
    for (; step == 1 && i + 2 <= cols; i += 2) copy_lanes<2>(to + i, from + i, n);
    for (; i < cols; ++i) copy_lanes<1>(to + i, from + i * step, n);
  }

  template <int N> void copy_lanes(T* to, const E* from, Index n) const {
    for (Index c = 0; c < n; ++c) copy_run<N>(to + c * kCols, from + c * c_.src.channel);
  }

  // Channels are neighbours, as in channels_last.
  void copy_channels(T* to, const E* from, Index step, Index cols, Index n) const {
    Index i = 0;
    for (; i + 4 <= cols; i += 4) {
      Index c = 0;
      for (; c + 4 <= n; c += 4) {
        transpose4<E, T>(to + c * kCols + i, kCols, from + i * step + c, step);
      }
      for (; c < n; ++c) {
        for (Index q = 0; q < 4; ++q)
          to[c * kCols + i + q] = static_cast<T>(from[(i + q) * step + c]);
      }
    }
    for (; i < cols; ++i) {
      for (Index c = 0; c < n; ++c) to[c * kCols + i] = static_cast<T>(from[i * step + c]);
    }
  }

  const Correlation<E>& c_;
  T* weights_;
  Index panels_;
};

}  // namespace gemm
}  // namespace TAPER_ISA
}  // namespace taper::cpu
