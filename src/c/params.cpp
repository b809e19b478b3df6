// See params.hpp.
#include "c/params.hpp"

#include <string>
#include <type_traits>

#include "base/short_names.hpp"

namespace wirecall::c {

// ---- integers that were decoded with the envelope ----

std::size_t Params::find_named_integer(const char* name) const noexcept {
  const std::size_t count = integers_->integer_count;
  std::size_t i = 0;
  while (i != count && !is_name(name, integers_->integer_names[i])) ++i;
  return i;
}

// ---- the reader ----

// None was given for params that were decoded with the envelope, which is JSON, or that are not there.
void Params::require_reader() {
  if (reader != nullptr) return;
  extras().reader = json_codec().reader();
  reader = extras().reader.get();
}

// To before the first of them.
void Params::start_over() {
  if (text_.empty()) {
    shape_ = Shape::none;
    return;
  }
  require_reader();
  with_reader(*reader, [this](auto& known) {
    if (shape_ != Shape::unknown) {
      known.rewind(root_);
    } else {
      known.reset(text_);
      root_ = known.mark();
      // Params are an array or an object, or there are none.
      if constexpr (std::is_same_v<decltype(known), json::JsonReader&>) {
        shape_ = *root_ == '[' ? Shape::array : *root_ == '{' ? Shape::object : Shape::none;
      } else {
        const ValueKind kind = known.kind();
        shape_ = kind == ValueKind::array ? Shape::array : kind == ValueKind::object ? Shape::object : Shape::none;
      }
    }
    if (shape_ == Shape::array) static_cast<void>(known.begin_array());
    if (shape_ == Shape::object) static_cast<void>(known.begin_object());
  });
  active = this;
  ended_ = false;
  number_ = kNoValue;
  top = nullptr;
}

// Moves to the next value. False, and nothing stands anywhere, behind the last.
[[gnu::always_inline]] inline bool Params::step(std::string_view& name) {
  if (ended_) return false;
  return with_reader(*reader, [&](auto& known) {
    if (top != nullptr && (active != this || known.mark() == top) && !has_passed(top)) {
      known.rewind(top);
      static_cast<void>(known.skip());
    }
    active = this;
    if (!(shape_ == Shape::object ? known.next_member(name) : known.next_element())) {
      ended_ = true;
      return false;
    }
    ++number_;
    top = known.mark();
    return true;
  });
}

[[gnu::always_inline]] inline bool Params::find_position(std::size_t index) {
  if (index >= asked_) asked_ = index + 1;
  std::string_view name;
  if (number_ + 1 == index && step(name)) [[likely]]
    return true;
  if (number_ != kNoValue && index < number_) start_over();
  while (number_ == kNoValue || number_ < index) {
    if (!step(name)) return false;
  }
  reader->rewind(top);
  active = this;
  return true;
}

// Mostly it is the next one.
bool Params::find_name(std::string_view name) {
  if (!index_) {
    if (std::string_view member; step(member) && same_name(name, member)) [[likely]] {
      take(number_);
      return true;
    }
    if (!make_index()) return false;
  }
  const MemberIndex::Member* const found = index_->find(name);
  if (found == nullptr) return false;
  take(found->number);
  number_ = found->number;
  top = found->value;
  ended_ = false;
  reader->rewind(top);
  active = this;
  return true;
}

bool Params::make_index() {
  MemberIndex index;
  start_over();
  std::string_view name;
  while (step(name)) {
    if (index.add({name.data(), name.size(), top, number_})) continue;
    failed = true;
    reader->rewind(root_);
    return reader->fail("at most " + std::to_string(MemberIndex::kMembersMax) + " members");
  }
  index.finish();
  index_ = std::move(index);
  return true;
}

bool Params::find(const Parameter& parameter) {
  if (shape_ == Shape::unknown) start_over();
  switch (shape_) {
    case Shape::array: return find_position(parameter.index);
    case Shape::object: return parameter.name != nullptr && find_name(parameter.words());
    default: return false;
  }
}

bool Params::missing(const Parameter& parameter, Reading reading) {
  require_reader();
  if (reader->failed()) reader->clear_failure();
  failed = true;
  reader->fail_missing(words_of(reading));
  return parameter.name != nullptr ? reader->failed_at(parameter.words()) : reader->failed_at(parameter.index);
}

void Params::wrong(const Parameter& parameter) {
  fail_at(top, top, parameter.name);
  if (parameter.name == nullptr) reader->failed_at(parameter.index);
}

bool Params::given(const Parameter& parameter) {
  return !failed && find(parameter) && reader->kind() != ValueKind::null;
}

// ---- what nobody has asked for ----

void Params::refuse_extra(std::string_view name, bool twice) {
  failed = true;
  reader->rewind(top);
  reader->fail(twice ? "one value" : "nothing");
  if (shape_ == Shape::object) {
    reader->failed_at(name);
  } else {
    reader->failed_at(number_);
  }
}

void Params::take_further(std::size_t number) {
  std::vector<bool>& taken = extras().taken;
  if (taken.size() <= number) taken.resize(number + 1);
  taken[number] = true;
}

bool Params::is_taken(std::size_t number) const noexcept {
  if (number < 64) return (taken_ >> number & 1) != 0;
  return extras_ != nullptr && number < extras_->taken.size() && extras_->taken[number];
}

// Mostly the reader has passed all values already, one after the other.
bool Params::all_read() {
  if (shape_ == Shape::unknown) start_over();
  std::string_view name;
  if (shape_ == Shape::array) {
    if (number_ != kNoValue && number_ >= asked_) start_over();
    while (step(name)) {
      if (number_ < asked_) continue;
      refuse_extra(name, false);
      return false;
    }
    return true;
  }
  if (shape_ != Shape::object) return true;
  while (step(name)) {
    if (!is_taken(number_)) break;
  }
  const std::size_t count = number_ == kNoValue ? 0 : number_ + 1;
  if (ended_ && count <= 64 && taken_ == (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1))
    return true;
  start_over();
  while (step(name) && is_taken(number_)) {
  }
  if (ended_) return true;
  const std::string extra{name};
  const std::size_t number = number_;
  bool twice = false;
  start_over();
  while (step(name) && number_ != number) twice |= name == extra;
  refuse_extra(extra, twice);
  return false;
}

}  // namespace wirecall::c
