// See splice.hpp.
#include "broker/splice.hpp"

#include "base/ascii.hpp"
#include "base/assert.hpp"
#include "broker/stream_request.hpp"

namespace wirecall::broker {

static const char* skip_space(const char* at) noexcept {
  while (is_space(*at)) ++at;
  return at;
}

// Where the member begins whose value begins at `value`. Envelope names hold no quote, not even an escaped one.
static const char* member_of(const char* value) noexcept {
  const char* at = value - 1;
  while (*at != '"') --at;  // behind the name come white space and the colon
  do --at;
  while (*at != '"');
  return at;
}

void Splice::add(const Change& change) noexcept {
  WIRECALL_ASSERT(count_ < kChangesMax);
  std::size_t at = count_++;
  for (; at != 0 && changes_[at - 1].value.data() > change.value.data(); --at) changes_[at] = changes_[at - 1];
  changes_[at] = change;
}

void Splice::append_to(Buffer& out) const {
  const char* from = text_.data();
  const char* const end = from + text_.size();
  for (std::size_t i = 0; i < count_; ++i) {
    const Change& change = changes_[i];
    const char* const value_end = change.value.data() + change.value.size();
    const char* const to = change.removes ? member_of(change.value.data()) : change.value.data();
    out.append({from, static_cast<std::size_t>(to - from)});
    out.append(change.by);
    from = value_end;
    if (!change.removes) continue;
    // Its comma goes with it: the one behind it, or, of the last member, the one before, if there is one: that is then
    // the last thing that was appended but for white space.
    from = skip_space(value_end);
    if (*from == ',') {
      ++from;
      continue;
    }
    std::size_t size = out.size();
    while (is_space(out.data()[size - 1])) --size;
    if (out.data()[size - 1] == ',') out.truncate(size - 1);
  }
  out.append({from, static_cast<std::size_t>(end - from)});
}

namespace {

// What is read of an error object.
struct ErrorParts {
  int code = 0;
  std::string_view data;  // empty for none
};

ErrorParts parts_of(std::string_view error, Reader& reader) {
  ErrorParts parts;
  reader.reset(error);
  if (reader.kind() != ValueKind::object) return parts;
  static_cast<void>(reader.begin_object());
  for (std::string_view name; reader.next_member(name);) {
    const bool is_code = name == "code" && reader.kind() == ValueKind::number;
    const bool is_data = name == "data" && reader.kind() == ValueKind::object;
    std::int64_t code = 0;
    if (is_code && reader.read_int(std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), code)) {
      parts.code = static_cast<int>(code);
    } else if (is_code) {
      break;  // a number that is no code
    } else {
      const std::string_view value = reader.skip();
      if (is_data) parts.data = value;
    }
  }
  reader.clear_failure();
  return parts;
}

bool has_origin(const ErrorParts& parts, Reader& reader) {
  if (parts.data.empty()) return false;
  reader.reset(parts.data);
  static_cast<void>(reader.begin_object());
  bool found = false;
  for (std::string_view name; reader.next_member(name); static_cast<void>(reader.skip()))
    found = found || name == "origin";
  return found;
}

// Puts into `splice`, whose text the error is a part of, what becomes of its data where they have an origin; whether
// anything does.
bool edit_origin(Splice& splice, const ErrorParts& parts, Reader& reader, const OwnErrorEdits& edits) {
  if (!has_origin(parts, reader)) return false;
  bool any = false;
  reader.reset(parts.data);
  static_cast<void>(reader.begin_object());
  for (std::string_view name; reader.next_member(name);) {
    const bool is_origin = !edits.keeps_origin && name == "origin";
    const bool is_delivered = edits.maybe && name == "delivered";
    const std::string_view value = reader.skip();
    if ((!is_origin && !is_delivered) || splice.is_full()) continue;
    if (is_delivered) {
      splice.replace(value, R"("maybe")");
    } else if (edits.origin.empty()) {
      splice.remove(value);
    } else {
      splice.replace(value, edits.origin);
    }
    any = true;
  }
  return any;
}

}  // namespace

CleanResponse without_origin(const Received& response, Reader& reader, Buffer& changed, const OwnErrorEdits& edits) {
  if (!response.has(Member::error)) [[likely]]
    return {.text = response.text, .id = response.id(), .error = {}, .code = 0};
  const std::string_view error = response[Member::error];
  const ErrorParts parts = parts_of(error, reader);
  Splice splice{response.text};
  if (!edit_origin(splice, parts, reader, edits))
    return {.text = response.text, .id = response.id(), .error = error, .code = parts.code};
  splice.append_to(changed);
  // The id lies before all that has gone, or behind it.
  const auto id_at = static_cast<std::size_t>(response.id().data() - response.text.data());
  const bool before = response.id().data() < error.data();
  const std::size_t at = before ? id_at : changed.size() - (response.text.size() - id_at);
  const std::size_t gone = response.text.size() - changed.size();
  const auto error_at = static_cast<std::size_t>(error.data() - response.text.data());
  return {.text = changed.view(),
          .id = changed.view().substr(at, response.id().size()),
          .error = changed.view().substr(error_at, error.size() - gone),
          .code = parts.code};
}

std::optional<Buffer> outcomes_of_node(std::string_view array, std::string_view node, Reader& reader) {
  reader.reset(array);
  if (reader.kind() != ValueKind::array) return std::nullopt;
  static_cast<void>(reader.begin_array());
  std::vector<std::string_view> outcomes;
  while (reader.next_element()) {
    constexpr std::string_view kShortest = R"({"error":0})";
    const std::string_view outcome = reader.skip();
    if (outcome.size() < kShortest.size()) return std::nullopt;
    outcomes.push_back(outcome);
  }
  if (outcomes.empty()) return std::nullopt;
  Buffer told;
  for (const std::string_view outcome : outcomes) {
    const auto [error, result, other_node] = members_of<3>(reader, outcome, {"error", "result", "node"});
    if (error.empty() == result.empty() || !other_node.empty()) return std::nullopt;
    Splice splice{outcome};
    splice.prepend(R"("node":)", node);
    if (!error.empty())
      static_cast<void>(edit_origin(splice, parts_of(error, reader), reader, {.origin = R"("remote")"}));
    if (!told.empty()) told.append(",");
    splice.append_to(told);
  }
  return told;
}

}  // namespace wirecall::broker
