// The query of a URL: its pairs of names and values, and the call that they stand for (GET /rpc/METHOD).
// Pure functions.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace wirecall::net {

/// `a=1` of a query, as it stands there.
struct QueryPair {
  std::string_view name;
  std::string_view value;

  /// Takes the first off `query`; false when there is none.
  bool take(std::string_view& query) noexcept;
};

/// `%41` and the like replaced by their bytes, and `+` by a space where that is what it means. The error says what is
/// wrong with `text`.
[[nodiscard]] std::expected<std::string, std::string_view> decode_percent(std::string_view text,
                                                                          bool plus_is_space = false);

/// The request, with id 1, that `a=1&b=x` makes of a method: each value is the JSON that it reads as, else a string;
/// `+` is a space. The error says what is wrong with `query`.
[[nodiscard]] std::expected<std::string, std::string_view> request_of_query(std::string_view method,
                                                                            std::string_view query);

}  // namespace wirecall::net
