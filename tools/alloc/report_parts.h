// The parts of a report's page.
#pragma once
#include <string>
#include <vector>

#include "taper/tools/alloc/report.h"

namespace taper::tools {

extern const char* const kReportPage;  // up to where our pages' style belongs
extern const char* const kReportBody;  // from there to where the data belong
extern const char* const kReportDrawing;
extern const char* const kReportScript;  // goes on where kReportDrawing ends

// The data as JSON that may stand inside <script>; lists of numbers are packed and in base64.
std::string report_data(const Trace& trace, const std::vector<ReportRun>& runs);

}  // namespace taper::tools
