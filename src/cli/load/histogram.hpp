// How long calls took, in nanoseconds and to 1/64, in 58 KiB; and the format in which other tools read that.
#pragma once

#include <string>

#include "base/histogram.hpp"

namespace wirecall::cli {

using Histogram = wirecall::Histogram<7>;

/// The percentile distribution in microseconds, in the text format of HdrHistogram, for its plotters.
[[nodiscard]] std::string hdr(const Histogram& histogram);

}  // namespace wirecall::cli
