// The parameters of a Python function as documents show them: with what is said of each, and the default that it has;
// and the names of a subscription.
#pragma once

#include <nanobind/nanobind.h>
#include <vector>

#include "method.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::python {

/// Of a method that was made of the same rows (parameters_of).
[[nodiscard]] std::vector<Param> described_params(const PythonMethod& method, nanobind::list described);
/// Of a tuple: the method that subscribes, the one that unsubscribes, and the notification.
[[nodiscard]] SubscriptionNames subscription_names(nanobind::tuple names);

}  // namespace wirecall::python
