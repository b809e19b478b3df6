// A handler in C as the untyped Binding that dispatch calls. Made on any thread; then const.
#pragma once

#include <string>
#include <vector>

#include "wirecall.h"
#include "wirecall/registry.hpp"

namespace wirecall::c {

struct CMethod;

/// A method that a program describes, with all members that its header did not know yet left empty. Throws
/// std::invalid_argument for what no description is.
class MethodDescription {
 public:
  explicit MethodDescription(const wc_method* method);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::vector<Param> params() const;
  [[nodiscard]] detail::Binding bind();
  /// It has been added as `method`, with what `bind` has returned: now it owns `user`.
  void added(Method& method) const;
  /// The same, where what it says besides has been said already.
  void provided() const noexcept;
  [[nodiscard]] const wc_method& described() const noexcept { return method_; }

 private:
  [[nodiscard]] wc_param param(std::size_t index) const;

  wc_method method_{};
  std::string name_;
  CMethod* bound_ = nullptr;
};

}  // namespace wirecall::c
