// Out: a parameter that only brings something back. The function writes it, the caller gives a variable, and nothing of
// it is sent:
//     void divide(int a, int b, Out<int> quotient, Out<int> remainder) { quotient = a / b; remainder = a % b; }
//     int quotient = 0, remainder = 0;
//     divide(7, 2, quotient, remainder);                             // here
//     client.call<divide>(7, 2, quotient, remainder);                // at a server
// A parameter `T&` is sent as well, and comes back changed. A reference to a variable, as cheap to copy; the variable
// outlives it. Thread: that of the variable.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace wirecall {

template <class T>
class Out {
 public:
  using value_type = T;

  Out(T& variable) noexcept : variable_(std::addressof(variable)) {}  // NOLINT: implicit, as a reference is
  Out(const Out&) noexcept = default;
  const Out& operator=(const Out&) const = delete;
  ~Out() = default;

  /// Writes the variable.
  template <class U>
    requires std::is_assignable_v<T&, U> && (!std::is_same_v<std::remove_cvref_t<U>, Out>)
  const Out& operator=(U&& value) const {
    *variable_ = std::forward<U>(value);
    return *this;
  }
  [[nodiscard]] T& operator*() const noexcept { return *variable_; }
  [[nodiscard]] T* operator->() const noexcept { return variable_; }

 private:
  T* variable_;
};

}  // namespace wirecall
