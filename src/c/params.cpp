// See params.hpp.
#include "c/params.hpp"

#include <string>

namespace wirecall::c {

// ---- integers that were decoded with the envelope ----

bool Params::take_named_integer(const Parameter& parameter, std::uint32_t& out) noexcept {
  const std::string_view name = parameter.words();
  const std::size_t count = integers_->integer_count;
  const auto is_at = [&](std::size_t i) {
    const Received::Span& given = integers_->integer_names[i];
    return given.size == name.size() && std::string_view{given.data, given.size} == name;
  };
  std::size_t i = parameter.index;  // callers mostly keep the order
  if (i >= count || !is_at(i)) {
    i = 0;
    while (i != count && !is_at(i)) ++i;
    if (i == count) return false;
  }
  taken_ |= std::uint64_t{1} << i;
  out = integers_->integers[i];
  return true;
}

// ---- the reader ----

void Params::start_over() {
  if (shape_ == Shape::unknown) {
    if (text_.empty()) {
      shape_ = Shape::none;
      return;
    }
    if (reader == nullptr) {
      own_reader_ = json_codec().reader();
      reader = own_reader_.get();
    }
    reader->reset(text_);
    const ValueKind kind = reader->kind();
    shape_ = kind == ValueKind::array ? Shape::array : kind == ValueKind::object ? Shape::object : Shape::none;
    root_ = reader->mark();
  } else {
    reader->rewind(root_);
  }
  active = this;
  ended_ = false;
  number_ = kNoValue;
  mark_ = nullptr;
  if (shape_ == Shape::array) static_cast<void>(reader->begin_array());
  if (shape_ == Shape::object) static_cast<void>(reader->begin_object());
}

// Moves to the next value. False, and nothing stands anywhere, behind the last.
bool Params::step(std::string_view& name) {
  if (ended_) return false;
  if (mark_ != nullptr && (active != this || reader->mark() == mark_)) {
    reader->rewind(mark_);
    static_cast<void>(reader->skip());
  }
  active = this;
  if (!(shape_ == Shape::object ? reader->next_member(name) : reader->next_element())) {
    ended_ = true;
    return false;
  }
  ++number_;
  mark_ = reader->mark();
  return true;
}

bool Params::find_position(std::size_t index) {
  if (index >= asked_) asked_ = index + 1;
  if (number_ != kNoValue && index < number_) start_over();
  std::string_view name;
  while (number_ == kNoValue || number_ < index) {
    if (!step(name)) return false;
  }
  reader->rewind(mark_);
  active = this;
  return true;
}

// From where the reader is to the end, and then from the beginning.
bool Params::find_name(std::string_view name) {
  const std::size_t began = number_;
  for (int pass = 0; pass != 2; ++pass) {
    std::string_view member;
    while (step(member)) {
      if (member == name) {
        if (number_ < 64) taken_ |= std::uint64_t{1} << number_;
        return true;
      }
      if (pass == 1 && number_ == began) return false;
    }
    if (began == kNoValue) return false;
    if (pass == 0) start_over();
  }
  return false;
}

bool Params::find(const Parameter& parameter) {
  if (shape_ == Shape::unknown) start_over();
  switch (shape_) {
    case Shape::array: return find_position(parameter.index);
    case Shape::object: return parameter.name != nullptr && find_name(parameter.words());
    default: return false;
  }
}

bool Params::get(const Parameter& parameter, Reading reading, const Target& target, bool optional) {
  if (failed) return false;
  if (!find(parameter)) {
    if (optional) return true;
    if (reader == nullptr) {
      own_reader_ = json_codec().reader();
      reader = own_reader_.get();
    }
    if (reader->failed()) reader->clear_failure();
    failed = true;
    reader->fail_missing(words_of(reading));
    if (parameter.name != nullptr) {
      reader->failed_at(parameter.words());
    } else {
      reader->failed_at(parameter.index);
    }
    return false;
  }
  if (optional && reader->read_null()) return true;
  return read(reading, target, parameter.words(), mark_);
}

bool Params::given(const Parameter& parameter) {
  return !failed && find(parameter) && reader->kind() != ValueKind::null;
}

// ---- what nobody has asked for ----

void Params::refuse_extra(std::string_view name, bool twice) {
  failed = true;
  reader->rewind(mark_);
  reader->fail(twice ? "one value" : "nothing");
  if (shape_ == Shape::object) {
    reader->failed_at(name);
  } else {
    reader->failed_at(number_);
  }
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
  const auto is_taken = [this] { return number_ < 64 && (taken_ >> number_ & 1) != 0; };
  while (step(name)) {
    if (!is_taken()) break;
  }
  const std::size_t count = number_ == kNoValue ? 0 : number_ + 1;
  if (ended_ && count <= 64 && taken_ == (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1))
    return true;
  start_over();
  while (step(name) && is_taken()) {
  }
  const std::string extra{name};
  const std::size_t number = number_;
  bool twice = false;
  start_over();
  while (step(name) && number_ != number) twice |= name == extra;
  refuse_extra(extra, twice);
  return false;
}

}  // namespace wirecall::c
