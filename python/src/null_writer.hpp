// NullWriter: writes nothing, for a trial of whether a value can be written. Thread: any, one at a time.
#pragma once

#include "wirecall/codec.hpp"

namespace wirecall::python {

class NullWriter final : public Writer {
 public:
  explicit NullWriter(bool is_json) : is_json_(is_json) {}
  void reset(Buffer&) override {}
  void null() override {}
  void boolean(bool) override {}
  void integer(std::int64_t) override {}
  void unsigned_integer(std::uint64_t) override {}
  void number(double) override {}
  void number(float) override {}
  void number_text(std::string_view) override {}
  void string(std::string_view) override {}
  void bytes(std::span<const std::byte>) override {}
  void extension(std::int8_t, std::span<const std::byte>) override {}
  void extension_in_parts(std::int8_t, std::span<const std::byte>, std::span<const std::byte>) override {}
  void begin_array(std::size_t) override {}
  void end_array() override {}
  void begin_object(std::size_t) override {}
  void key(std::string_view) override {}
  void end_object() override {}
  void json(std::string_view) override {}
  [[nodiscard]] bool is_json() const noexcept override { return is_json_; }

 private:
  bool is_json_;
};

}  // namespace wirecall::python
