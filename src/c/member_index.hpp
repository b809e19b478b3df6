// MemberIndex: where each member of the params is, by its name. It is made by one pass over them, when a handler first
// asks for another parameter than the next, so that all that it asks for takes one more pass at most, however large the
// params are. A few members need no memory of the heap. A value of one call; one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "base/short_names.hpp"

namespace wirecall::c {

class MemberIndex {
 public:
  struct Member {
    const char* text;  ///< the name, which lasts as long as the call
    std::size_t size;
    const char* value;   ///< the reader's mark
    std::size_t number;  ///< in the order in which they were sent

    [[nodiscard]] std::string_view name() const noexcept { return {text, size}; }
  };
  MemberIndex() noexcept {}  // NOLINT(cppcoreguidelines-pro-type-member-init,modernize-use-equals-default): no zeros
  /// More are refused: so the index takes 2 MiB at most.
  static constexpr std::size_t kMembersMax = 65'536;

  /// False where there are too many already. Throws std::bad_alloc.
  bool add(const Member& member) {
    if (count_ == kMembersMax) return false;
    if (count_ < few_.size()) {
      few_[count_] = member;
    } else {
      if (!many_) many_ = std::make_unique<std::vector<Member>>(few_.begin(), few_.end());
      many_->push_back(member);
    }
    ++count_;
    return true;
  }
  /// All have been added.
  void finish() {
    if (many_) std::ranges::sort(*many_, before);
  }
  /// The first member of that name; null for none.
  [[nodiscard]] const Member* find(std::string_view name) const noexcept {
    if (many_) {
      const auto found = std::ranges::lower_bound(*many_, name, {}, &Member::name);
      return found != many_->end() && found->name() == name ? &*found : nullptr;
    }
    for (std::size_t i = 0; i != count_; ++i) {
      if (same_name(few_[i].name(), name)) return &few_[i];
    }
    return nullptr;
  }

 private:
  static bool before(const Member& a, const Member& b) noexcept {
    const int order = a.name().compare(b.name());
    return order != 0 ? order < 0 : a.number < b.number;
  }

  std::size_t count_ = 0;
  std::array<Member, 32> few_;                 // in the order in which they were sent
  std::unique_ptr<std::vector<Member>> many_;  // sorted; null for a few
};

}  // namespace wirecall::c
