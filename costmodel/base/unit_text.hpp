// Parses and formats numbers with units: "300 GB/s", "80 GiB", "2.5 us", "312 TFLOP/s". Decimal
// prefixes (k, M, G, T, P) are powers of 1000, binary ones (Ki, Mi, Gi, Ti) powers of 1024. In a
// rate, a lower-case b is a bit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "costmodel/base/units.hpp"

namespace costmodel {

enum class Dimension { count, time, size, bandwidth, rate };

// The base unit of a dimension: "", "s", "B", "B/s", "FLOP/s".
std::string_view base_unit(Dimension dimension);
// The unit in which people state it, and which a bare number may lack: "us", "GiB", "GB/s".
std::string_view usual_unit(Dimension dimension);
// An example of a valid value, for error messages: "25 GB/s".
std::string_view example_of(Dimension dimension);

struct ParsedQuantity {
  std::optional<double> value;  // in base units
  std::string why;              // the error, when there is no value
};

// Parses "80 GiB", or a bare number in the base unit. A unit of another dimension is an error.
ParsedQuantity parse_quantity(std::string_view text, Dimension dimension);

// Parses "15T", "300 B", "1.5e12" or "15,000": a plain number, or thousands, millions, billions or
// trillions (k, M, B, T) of it. Nothing for what is no such number.
std::optional<double> parse_count(std::string_view text);

std::string format_seconds(Seconds t);           // "34.72 s", "12.3 ms", "4.5 us"
std::string format_span(Seconds t);              // the same, from minutes on "2.5 min", "3.1 h"
std::string format_bytes(Bytes b);               // "71.4 GiB"
std::string format_gib(Bytes b);                 // "71.4" (GiB, for table columns)
std::string format_flops(Flops f);               // "231.9 GFLOP"
std::string format_rate(FlopsPerSecond r);       // "312 TFLOP/s"
std::string format_bandwidth(BytesPerSecond r);  // "25 GB/s"
std::string format_count(double n);              // "174.6 B" parameters: k, M, B, T
std::string format_integer(long long n);         // "1,536"

}  // namespace costmodel
