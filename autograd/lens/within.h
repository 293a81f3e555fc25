// Work of our own, or of a hook, that is no step of the user's computation: no cut is written down.
#pragma once
#include "taper/core/base/source_loc.h"

namespace taper::lens {

class Within {
 public:
  explicit Within(const char* op) : kept_(call_site.op) { call_site.op = op; }
  ~Within() { call_site.op = kept_; }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  const char* kept_;
};

}  // namespace taper::lens
