// What a call that must throw taper::Error said.
#pragma once
#include <string>

#include "taper/core/base/error.h"

namespace taper {

// "no error" when it did not throw.
template <class F> std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace taper
