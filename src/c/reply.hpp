// wc_reply: the outcome of a call that a client has made, with its result as JSON text. It owns all that it tells.
#pragma once

#include <memory>
#include <string>

#include "c/values.hpp"
#include "wirecall.h"
#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"

struct wc_reply {
  explicit wc_reply(std::string_view result);
  explicit wc_reply(wirecall::Error failed) : error(std::move(failed)) {}
  wc_reply(wc_reply&&) = delete;

  [[nodiscard]] bool has_result() const noexcept { return reader != nullptr; }

  std::string json;  // padded for the reader
  std::size_t json_size = 0;
  wirecall::Error error{0, {}};
  // Reading changes where the reader stands, and nothing that can be seen.
  mutable std::unique_ptr<wirecall::Reader> reader;
  mutable wirecall::c::Values values;
};
