// WrappedBackend: a backend that forwards everything to another one. A test overrides what it wants to change.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "runtime/backend.hpp"

namespace wirecall::runtime {

class WrappedBackend : public Backend {
 public:
  /// `inner` outlives it, or is a member of the derived class.
  explicit WrappedBackend(Backend& inner) noexcept : inner_(&inner) {}
  explicit WrappedBackend(std::unique_ptr<Backend> inner) noexcept : owned_(std::move(inner)), inner_(owned_.get()) {}

  std::span<Completion> turn(std::span<Operation> submitted, std::chrono::nanoseconds until) override {
    return inner_->turn(submitted, until);
  }
  void wake() noexcept override { inner_->wake(); }
  [[nodiscard]] std::shared_ptr<void> keep_lent() override { return inner_->keep_lent(); }
  [[nodiscard]] std::size_t readable(Handle handle) const noexcept override { return inner_->readable(handle); }
  [[nodiscard]] std::size_t unsent(Handle handle) const noexcept override { return inner_->unsent(handle); }
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept override { return inner_->now(); }

 private:
  std::unique_ptr<Backend> owned_;
  Backend* inner_;
};

}  // namespace wirecall::runtime
