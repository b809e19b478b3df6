// See described.hpp.
#include "described.hpp"

#include <cstddef>
#include <nanobind/stl/string.h>
#include <string>

namespace wirecall::python {
namespace nb = nanobind;

std::vector<Param> described_params(const PythonMethod& method, nb::list described) {
  std::vector<Param> params = method.params();
  std::size_t at = 0;
  for (nb::handle entry : described) {
    const auto row = nb::cast<nb::tuple>(entry);
    const auto filled = static_cast<Filled>(nb::cast<int>(row[1]));
    if (filled != Filled::by_position && filled != Filled::by_name) continue;
    params[at++].doc(nb::cast<std::string>(row[5])).shown_default(nb::cast<std::string>(row[6]));
  }
  return params;
}

SubscriptionNames subscription_names(nb::tuple names) {
  const auto name = [&](std::size_t index) { return nb::cast<std::string>(names[index]); };
  return {.subscribe = name(0), .unsubscribe = name(1), .notification = name(2)};
}

}  // namespace wirecall::python
