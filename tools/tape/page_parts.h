// The parts of the tape's page.
#pragma once

namespace taper::tools {

extern const char* const kTapeBody;  // from behind our pages' style to where the data belong
extern const char* const kTapeScript;

}  // namespace taper::tools
