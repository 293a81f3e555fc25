// The sides of the products that a convolution is: which element of an image, a weight or a
// gradient is in which row and step, and how an index is carried on without divisions.
#pragma once

#include "taper/cuda/device.cuh"

namespace taper::cuda {

constexpr int kOutside = -(1 << 30);  // a coordinate that no other brings inside when added

// (N, C, H, W) in any strides, in elements.
template <class E> struct Images {
  E* data;
  Index image, channel, row, col;
};

template <class E> Images<E> images_of(const View& view) {
  const std::int64_t* s = view.layout->strides;
  return {view.as<E>(), s[0], s[1], s[2], s[3]};
}

inline int small(Index size) {
  TAPER_CHECK(size < -kOutside, "conv2d: a side of ", size, " is too long");
  return static_cast<int>(size);
}

// The places of a window along one dim that meet a pixel: first, first + step, ..., `count` of
// them; the i-th looks at the pixel's own coordinate plus shift + i * shift_step.
struct TapRun {
  Index first = 0, step = 1, count = 0, shift = 0, shift_step = 1;

  static TapRun all(const Window2d& window, int dim) {
    return {0, 1, window.kernel[dim], -window.padding[dim], window.dilation[dim]};
  }

  // Backwards, for pixels that leave `rest` by the stride: (rest + padding - k dilation) must be a
  // multiple of the stride.
  static TapRun meeting(const Window2d& window, int dim, Index rest) {
    const Index stride = window.stride[dim], dilation = window.dilation[dim];
    TapRun run;
    for (Index k = 0; k < window.kernel[dim]; ++k) {
      const Index distance = rest + window.padding[dim] - k * dilation;
      if (distance % stride != 0) continue;
      if (run.count == 0) {
        run.first = k;
        run.shift = distance / stride;
      } else if (run.count == 1) {
        run.step = k - run.first;
        run.shift_step = distance / stride - run.shift;
      }
      ++run.count;
    }
    return run;
  }
};

// All pixels of some images; they look at another plane by steps.
struct Pixels {
  int images, height, width, step_h, step_w;

  Pixels(const Layout& layout, Index by_h, Index by_w)
      : images(small(layout.sizes[0])),
        height(small(layout.sizes[2])),
        width(small(layout.sizes[3])),
        step_h(small(by_h)),
        step_w(small(by_w)) {}

  TAPER_HD Index count() const { return Index{images} * height * width; }
};

struct Pixel {
  int n, i, j;

  __device__ void advance(const Pixels& pixels, int by) {
    j += by;
    while (j >= pixels.width) {
      j -= pixels.width;
      if (++i < pixels.height) continue;
      i = 0;
      ++n;
    }
  }
};

__device__ inline Pixel pixel_at(const Pixels& pixels, Index p) {
  const Index row = p / pixels.width, n = row / pixels.height;
  return {static_cast<int>(n), static_cast<int>(row - n * pixels.height),
          static_cast<int>(p - row * pixels.width)};
}

// All places of a window, the input channels of one after those of another.
struct Places {
  int count_h, count_w, channels, shift_h, shift_w, step_h, step_w;

  Places(const TapRun (&runs)[2], Index inputs)
      : count_h(small(runs[0].count)),
        count_w(small(runs[1].count)),
        channels(small(inputs)),
        shift_h(static_cast<int>(runs[0].shift)),
        shift_w(static_cast<int>(runs[1].shift)),
        step_h(static_cast<int>(runs[0].shift_step)),
        step_w(static_cast<int>(runs[1].shift_step)) {}

  TAPER_HD Index count() const { return Index{count_h} * count_w * channels; }
};

struct Place {
  int a, b, c;

  __device__ void advance(const Places& places, int by) {
    c += by;
    while (c >= places.channels) {
      c -= places.channels;
      if (++b < places.count_w) continue;
      b = 0;
      ++a;
    }
  }
};

__device__ inline Place place_at(const Places& places, Index k) {
  const Index tap = k / places.channels, a = tap / places.count_w;
  return {static_cast<int>(a), static_cast<int>(tap - a * places.count_w),
          static_cast<int>(k - tap * places.channels)};
}

// One half of a coordinate in the source: the sum of a pixel's and a place's is an element.
struct Half2d {
  int y, x;
  Index offset;
};

template <class E> struct Source {
  Images<const E> images;
  int height, width;
  Pixels pixels;
  Places places;

  Source(const View& view, const Pixels& p, const Places& k)
      : images(images_of<const E>(view)),
        height(small(view.layout->sizes[2])),
        width(small(view.layout->sizes[3])),
        pixels(p),
        places(k) {}

  __device__ void enter(Index group) { images.data += group * places.channels * images.channel; }

  __device__ Half2d half(const Pixel& p) const {
    const int y = p.i * pixels.step_h, x = p.j * pixels.step_w;
    return {p.n < pixels.images ? y : kOutside, x,
            p.n * images.image + y * images.row + x * images.col};
  }

  __device__ Half2d half(const Place& k) const {
    const int y = places.shift_h + k.a * places.step_h, x = places.shift_w + k.b * places.step_w;
    return {k.a < places.count_h ? y : kOutside, x,
            k.c * images.channel + y * images.row + x * images.col};
  }

  template <class T> __device__ T at(const Half2d& p, const Half2d& k) const {
    const int y = p.y + k.y, x = p.x + k.x;
    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
    return inside ? static_cast<T>(images.data[p.offset + k.offset]) : T(0);
  }
};

// An index and what it comes to; both are carried on.
template <class Counter> struct Walked {
  Counter counter;
  Half2d half;
};

// --- sides: element(row, step), T(0) beyond the end of either ---

// The source with a row (or column) for each pixel, a step for each place.
template <class E, bool kAlong> struct PixelsOf {
  using Element = E;
  using Row = Half2d;
  using Step = Walked<Place>;
  static constexpr bool kAlongSteps = kAlong;
  Source<E> source;

  __device__ void enter(Index group) { source.enter(group); }

  __device__ Row row(Index p) const { return source.half(pixel_at(source.pixels, p)); }

  __device__ Step step(Index k) const {
    const Place place = place_at(source.places, k);
    return {place, source.half(place)};
  }

  __device__ void advance(Step& step, int by) const {
    step.counter.advance(source.places, by);
    step.half = source.half(step.counter);
  }

  template <class T> __device__ T element(const Row& row, const Step& step) const {
    return source.template at<T>(row, step.half);
  }
};

// The other way round.
template <class E, bool kAlong> struct PlacesOf {
  using Element = E;
  using Row = Half2d;
  using Step = Walked<Pixel>;
  static constexpr bool kAlongSteps = kAlong;
  Source<E> source;

  __device__ void enter(Index group) { source.enter(group); }

  __device__ Row row(Index k) const { return source.half(place_at(source.places, k)); }

  __device__ Step step(Index p) const {
    const Pixel pixel = pixel_at(source.pixels, p);
    return {pixel, source.half(pixel)};
  }

  __device__ void advance(Step& step, int by) const {
    step.counter.advance(source.pixels, by);
    step.half = source.half(step.counter);
  }

  template <class T> __device__ T element(const Row& row, const Step& step) const {
    return source.template at<T>(step.half, row);
  }
};

// Weights (groups, depth, rows) without gaps.
template <class E> struct Weights {
  using Element = E;
  using Row = Index;
  using Step = Index;
  static constexpr bool kAlongSteps = false;
  const E* data;
  Index group, rows, depth;

  __device__ void enter(Index g) { data += g * group; }

  __device__ Row row(Index m) const { return m; }

  __device__ Step step(Index k) const { return k; }

  __device__ void advance(Step& k, int by) const { k += by; }

  template <class T> __device__ T element(Row m, Step k) const {
    return m < rows && k < depth ? static_cast<T>(data[k * rows + m]) : T(0);
  }
};

// A gradient with a row for each of the group's channels, a step for each pixel.
template <class E, bool kAlong> struct Channels {
  using Element = E;
  using Row = Index;
  using Step = Walked<Pixel>;
  static constexpr bool kAlongSteps = kAlong;
  Images<const E> images;
  Pixels pixels;
  Index rows;

  __device__ void enter(Index group) { images.data += group * rows * images.channel; }

  __device__ Row row(Index m) const { return m; }

  __device__ Step step(Index p) const {
    const Pixel pixel = pixel_at(pixels, p);
    return {pixel, half(pixel)};
  }

  __device__ void advance(Step& step, int by) const {
    step.counter.advance(pixels, by);
    step.half = half(step.counter);
  }

  template <class T> __device__ T element(Row m, const Step& step) const {
    const bool inside = m < rows && step.counter.n < pixels.images;
    return inside ? static_cast<T>(images.data[m * images.channel + step.half.offset]) : T(0);
  }

 private:
  __device__ Half2d half(const Pixel& p) const {
    return {p.i, p.j, p.n * images.image + p.i * images.row + p.j * images.col};
  }
};

// --- results: row m is a channel ---

template <class E> struct ToPixels {
  using Element = E;
  Images<E> images;
  Index rows;
  Pixels pixels;
  const E* bias;
  Index bias_step;

  __device__ void enter(Index group) {
    images.data += group * rows * images.channel;
    if (bias != nullptr) bias += group * rows * bias_step;
  }

  template <class T> __device__ T start(Index m) const {
    return bias != nullptr ? static_cast<T>(bias[m * bias_step]) : T(0);
  }

  __device__ E* column(Index p) const {
    const Pixel at = pixel_at(pixels, p);
    return images.data + at.n * images.image + at.i * images.row + at.j * images.col;
  }

  template <class T> __device__ void store(E* column, Index m, T value) const {
    column[m * images.channel] = static_cast<E>(value);
  }
};

template <class E> struct ToPlaces {
  using Element = E;
  Images<E> images;
  Index rows;
  Places places;

  __device__ void enter(Index group) { images.data += group * rows * images.image; }

  template <class T> __device__ T start(Index) const { return T(0); }

  __device__ E* column(Index k) const {
    const Place at = place_at(places, k);
    return images.data + at.c * images.channel + at.a * images.row + at.b * images.col;
  }

  template <class T> __device__ void store(E* column, Index m, T value) const {
    column[m * images.image] = static_cast<E>(value);
  }
};

}  // namespace taper::cuda
