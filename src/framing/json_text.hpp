// JsonText: the framing of plain JSON text. A message ends where its value ends, so lines, concatenated values and
// values set apart by a delimiter of one's own are all understood (docs/wire.md "JSON text"). A value that lies in the
// input as a whole is left to the codec, which delimits and validates it in one pass; only one that comes in pieces is
// followed byte by byte. Not a validator of envelopes.
// One connection each, on its thread.
#pragma once

#include <string>

#include "framing/framing.hpp"
#include "framing/json_automaton.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::framing {

/// What the connections of one server or client have in common. Outlives their framings.
class JsonTextSettings {
 public:
  /// `delimiter` ends each message sent and may stand between those received. Throws std::invalid_argument when it is
  /// empty, or could be taken for the start of a value.
  explicit JsonTextSettings(const Limits& limits, std::string delimiter = "\n");

  [[nodiscard]] const Limits& limits() const noexcept { return *limits_; }
  [[nodiscard]] std::string_view delimiter() const noexcept { return delimiter_; }
  /// What has to be looked for between values: the delimiter without white space around it, mostly nothing.
  [[nodiscard]] std::string_view mark() const noexcept { return mark_; }

 private:
  const Limits* limits_;
  std::string delimiter_;
  std::string mark_;
};

class JsonText final : public Framing {
 public:
  explicit JsonText(const JsonTextSettings& settings) noexcept : settings_(&settings) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "json"; }
  Found next(std::span<char> bytes) override;
  Found unfinished(std::string_view input) override;
  Recovery recover(std::string_view read) override;
  Found end_of_stream() override;
  [[nodiscard]] bool sends_lines() const noexcept override { return true; }
  [[nodiscard]] std::string_view tail() const noexcept override { return settings_->delimiter(); }

 private:
  enum class State : std::uint8_t {
    start,       // nothing but a part of a byte order mark has come
    between,     // between messages
    within,      // in a message that comes in pieces
    discarding,  // behind an error, looking for the end of the line
  };

  Found start(std::span<char> input);
  Found begin(std::string_view input);
  Found feed(std::string_view input);
  Found discard(std::string_view input);

  const JsonTextSettings* settings_;
  JsonAutomaton automaton_;
  State state_ = State::start;
  std::uint32_t marked_ = 0;     // bytes of the delimiter, or of the byte order mark, that have come
  std::size_t passed_over_ = 0;  // discarded bytes
};

}  // namespace wirecall::framing
