// Topics, and the patterns by which they are subscribed to: words between dots; in a pattern `*` stands for one word,
// and a last `>` for one or more. A broker goes by the same rules, so a client knows for which subscription an event
// has come. Pure. See docs/client.md, "At a broker".
#pragma once

#include <string_view>

namespace wirecall::session {

/// Whether events can have this name: 1 to 255 bytes without empty words, white space, control bytes, `*` and `>`.
[[nodiscard]] bool is_topic(std::string_view name) noexcept;
/// The same, but that whole words may be `*`, and the last one `>`.
[[nodiscard]] bool is_pattern(std::string_view pattern) noexcept;
/// Whether the pattern takes the topic.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view topic) noexcept;

}  // namespace wirecall::session
