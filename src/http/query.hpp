// Texts of what a browser or a person asks for by GET: a call written as a query, and the front page.
// Pure functions.
#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>

namespace wirecall::net {

/// `%41` and the like replaced by their bytes. The error says what is wrong with `text`.
[[nodiscard]] std::expected<std::string, std::string_view> decode_percent(std::string_view text);

/// The request, with id 1, that `a=1&b=x` makes of a method: each value is the JSON that it reads as, else a string;
/// `+` is a space. The error says what is wrong with `query`.
[[nodiscard]] std::expected<std::string, std::string_view> request_of_query(std::string_view method,
                                                                            std::string_view query);

/// What this is, and the ways in: each of `ways` is what curl is given to reach the server by one of them.
[[nodiscard]] std::string front_page(std::span<const std::string> ways);

}  // namespace wirecall::net
