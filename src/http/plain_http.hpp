// PlainHttp: the framing of HTTP that comes without TLS where it has to come by it: the first request is refused, as
// HTTP does that, and nothing follows. Pure; owned by its connection.
#pragma once

#include "framing/framing.hpp"
#include "http/response.hpp"

namespace wirecall::net {

class PlainHttp final : public framing::Framing {
 public:
  framing::Found next(std::span<char> input) override {
    head_only_ = std::string_view{input.data(), input.size()}.starts_with("HEAD ");
    return {.find = framing::Find::lost};
  }
  framing::Found unfinished(std::string_view) override { return {.find = framing::Find::lost}; }
  framing::Recovery recover(std::string_view) override { return framing::Recovery::close; }
  framing::Found end_of_stream() override { return {}; }
  [[nodiscard]] bool sends_lines() const noexcept override { return true; }
  [[nodiscard]] bool has_farewell() const noexcept override { return true; }
  [[nodiscard]] std::string_view farewell(framing::Ending) override {
    if (!response_.empty()) return {};
    write_response(response_, {.status = 400, .content_type = "text/plain; charset=utf-8", .closes = true},
                   "Bad Request: this request came without TLS, to a port that wants it: use https:// or wss://; the "
                   "server's option allow_plain admits it\n",
                   head_only_);
    return response_.view();
  }

 private:
  Buffer response_;
  bool head_only_ = false;
};

}  // namespace wirecall::net
