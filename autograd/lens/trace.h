// Writing a profile as a trace for Perfetto and Chrome.
#pragma once
#include "taper/autograd/lens/profile.h"

namespace taper::lens {

// `events` by rising start. Throws when the file cannot be written.
void write_trace(const std::string& path, const std::vector<ProfileEvent>& events);

}  // namespace taper::lens
