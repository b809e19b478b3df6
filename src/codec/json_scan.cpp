// The compiled face of the scanner (json_scan.hpp), and the long-string search that is chosen at run time.
#include "codec/json_scan.hpp"

namespace wirecall::json {

template <class Ops>
static Scan scan_with(std::string_view text, std::uint32_t depth_max) noexcept {
  Scanner<Ops> scanner{depth_max};
  const char* end = scanner.value(scanner.skip_space(text.data()), 0);
  if (end != nullptr) return {ScanStatus::complete, static_cast<std::size_t>(end - text.data())};
  const auto offset = static_cast<std::size_t>(scanner.bad - text.data());
  if (scanner.too_deep) return {ScanStatus::too_deep, offset};
  return {offset >= text.size() ? ScanStatus::incomplete : ScanStatus::malformed, offset};
}

Scan scan(std::string_view text, std::uint32_t depth_max) noexcept { return scan_with<NativeOps>(text, depth_max); }

Scan scan_scalar(std::string_view text, std::uint32_t depth_max) noexcept {
  return scan_with<ScalarOps>(text, depth_max);
}

}  // namespace wirecall::json
