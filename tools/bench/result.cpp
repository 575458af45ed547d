#include "bench/result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "bench/statistics.hpp"

namespace mxjit::bench {
namespace {

using Json = nlohmann::ordered_json;

/// Six significant digits: what a clock can tell, and no more.
Json number(double value) { return Json::parse(fmt::format("{:.6g}", value)); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }
Json text(const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); }
Json parsed(const std::string& json) { return json.empty() ? Json(nullptr) : Json::parse(json); }

double median_us(const Row& row) { return summarize(row.samples).median; }

void add_peer(Json& json, const std::string& field, const std::optional<Peer>& peer) {
  json[field] = peer ? Json(peer->name) : Json(nullptr);
  json[field + "_us"] = peer ? number(peer->us) : Json(nullptr);
}

Json row_json(const Row& row, const Roofs& roofs) {
  const Summary summary = summarize(row.samples);
  Json json;
  json["name"] = row.name;
  json["problem"] = parsed(row.problem);
  json["shape"] = row.shape;
  json["us"] = number(summary.median);
  json["us_min"] = number(summary.min);
  json["us_max"] = number(summary.max);
  Json samples = Json::array();
  for (const double sample : row.samples) samples.push_back(number(sample));
  json["samples"] = std::move(samples);
  if (row.flop) {
    json["tflops"] = number(*row.flop / summary.median * 1e-6);
  } else {
    json["gbs"] = row.bytes ? number(*row.bytes / summary.median * 1e-3) : Json(nullptr);
  }
  json["of_roof"] = number(of_roof(row, roofs));
  add_peer(json, "peer", row.peer);
  add_peer(json, "peer2", row.peer2);
  json["speedup"] = row.peer ? number(row.peer->us / summary.median) : Json(nullptr);
  json["configuration"] = parsed(row.configuration);
  json["large"] = row.large;
  json["correct"] = row.correct;
  if (!row.difference.empty()) json["difference"] = row.difference;
  for (const auto& [field, value] : row.extra) json[field] = number(value);
  return json;
}

Json roofs_json(const Roofs& roofs) {
  Json json;
  json["copy_gbs"] = number(roofs.copy_gbs);
  json["copy_fixed_us"] = number(roofs.copy_fixed_us);
  json["bf16_tflops"] = number(roofs.bf16_tflops);
  json["fp8_tflops"] = number(roofs.fp8_tflops);
  json["fp8_promote_tflops"] = number(roofs.fp8_promote_tflops);
  return json;
}

using Cells = std::vector<std::string>;

std::string cell(const std::optional<double>& value, std::string_view format) {
  return value ? fmt::format(fmt::runtime(format), *value) : std::string("-");
}

/// A microsecond figure: fixed digits that suit its size.
std::string micros(double us) {
  if (us < 1) return fmt::format("{:.4f}", us);
  return us < 100 ? fmt::format("{:.2f}", us) : fmt::format("{:.1f}", us);
}

/// Header first. Only the columns that some row fills.
std::vector<Cells> table(const Result& result) {
  std::vector<std::string> extras;
  bool rate = false;
  bool peer = false;
  bool peer2 = false;
  for (const Row& row : result.rows) {
    rate = rate || row.bytes || row.flop;
    peer = peer || row.peer;
    peer2 = peer2 || row.peer2;
    for (const auto& [field, value] : row.extra) {
      if (std::find(extras.begin(), extras.end(), field) == extras.end()) extras.push_back(field);
    }
  }
  Cells header = {"name", "shape", "us", "min", "max"};
  if (rate) header.insert(header.end(), {"GB/s or TFLOP/s", "of roof"});
  if (peer) header.insert(header.end(), {"peer us", "speedup"});
  if (peer2) header.emplace_back("peer2 us");
  header.insert(header.end(), extras.begin(), extras.end());
  header.emplace_back("correct");

  std::vector<Cells> lines = {header};
  for (const Row& row : result.rows) {
    const Summary summary = summarize(row.samples);
    Cells line = {row.name, fmt::format("{}", fmt::join(row.shape, "x")), micros(summary.median),
                  micros(summary.min), micros(summary.max)};
    if (rate) {
      const auto gbs = row.bytes ? std::optional(*row.bytes / summary.median * 1e-3) : std::nullopt;
      const auto tflops = row.flop ? std::optional(*row.flop / summary.median * 1e-6) : std::nullopt;
      line.push_back(cell(tflops ? tflops : gbs, "{:.0f}"));
      line.push_back(cell(of_roof(row, result.roofs), "{:.3f}"));
    }
    if (peer) {
      line.push_back(row.peer ? micros(row.peer->us) : "-");
      line.push_back(row.peer ? fmt::format("{:.2f}", row.peer->us / summary.median) : "-");
    }
    if (peer2) line.push_back(row.peer2 ? micros(row.peer2->us) : "-");
    for (const std::string& field : extras) {
      const auto at =
          std::find_if(row.extra.begin(), row.extra.end(), [&](const auto& e) { return e.first == field; });
      line.push_back(at == row.extra.end() ? "-" : micros(at->second));
    }
    line.emplace_back(row.correct ? "yes" : "NO");
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string machine_line(const Result& result) {
  const Machine& machine = result.machine;
  const auto or_none = [](const std::string& value) { return value.empty() ? std::string("none") : value; };
  return fmt::format("GPU {}, driver {}, CUDA {}, NVRTC {}, SM {} MHz, memory {} MHz", or_none(machine.gpu),
                     or_none(machine.driver), or_none(machine.cuda), or_none(machine.nvrtc),
                     cell(machine.sm_mhz, "{:.0f}"), cell(machine.mem_mhz, "{:.0f}"));
}

std::string roofs_line(const Roofs& roofs) {
  return fmt::format(
      "copy {} GB/s (a 64 MiB copy: {} us over its bytes), bf16 {} TFLOP/s, FP8 {}, FP8 promoted {}",
      cell(roofs.copy_gbs, "{:.0f}"), cell(roofs.copy_fixed_us, "{:.2f}"), cell(roofs.bf16_tflops, "{:.0f}"),
      cell(roofs.fp8_tflops, "{:.0f}"), cell(roofs.fp8_promote_tflops, "{:.0f}"));
}

}  // namespace

std::optional<double> of_roof(const Row& row, const Roofs& roofs) {
  double floor_us = 0;
  if (row.bytes && roofs.copy_gbs) floor_us = *row.bytes / *roofs.copy_gbs * 1e-3;
  if (row.flop) {
    const std::optional<double>& tflops = row.bf16_flop ? roofs.bf16_tflops : roofs.fp8_tflops;
    if (!tflops) return std::nullopt;
    floor_us = std::max(floor_us, *row.flop / *tflops * 1e-6);
  }
  if (floor_us <= 0) return std::nullopt;
  return floor_us / median_us(row);
}

std::string to_json(const Result& result) {
  Json head;
  head["schema"] = 1;
  head["suite"] = result.suite;
  head["gpu"] = text(result.machine.gpu);
  head["driver"] = text(result.machine.driver);
  head["cuda"] = text(result.machine.cuda);
  head["nvrtc"] = text(result.machine.nvrtc);
  head["clocks"]["sm_mhz"] = number(result.machine.sm_mhz);
  head["clocks"]["mem_mhz"] = number(result.machine.mem_mhz);
  head["roofs"] = roofs_json(result.roofs);

  std::string out = "{\n";
  for (const auto& [field, value] : head.items()) out += fmt::format("\"{}\": {},\n", field, value.dump());
  out += "\"rows\": [";
  std::string_view separator = "\n";
  for (const Row& row : result.rows) {
    out += fmt::format("{}{}", separator, row_json(row, result.roofs).dump());
    separator = ",\n";
  }
  out += fmt::format("\n],\n\"notes\": {},\n\"digest\": {}\n}}\n", Json(result.notes).dump(),
                     text(result.digest).dump());
  return out;
}

std::string to_markdown(const Result& result) {
  std::string out = fmt::format("# mxjit bench {}\n\n{}.\n", result.suite, machine_line(result));
  if (result.roofs.copy_gbs) out += fmt::format("Roofs of this run: {}.\n", roofs_line(result.roofs));
  out += fmt::format("Digest of kernels/ and src/: {}.\nRaw samples: {}.json beside this file.\n\n",
                     result.digest.empty() ? "unknown" : result.digest, result.suite);
  for (const std::string& note : result.notes) out += fmt::format("- {}\n", note);
  if (!result.notes.empty()) out += "\n";
  const std::vector<Cells> lines = table(result);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += fmt::format("| {} |\n", fmt::join(lines[i], " | "));
    if (i == 0)
      out += fmt::format("|{}\n", fmt::join(std::vector<std::string>(lines[0].size(), " --- |"), ""));
  }
  return out;
}

std::string to_text(const Result& result) {
  const std::vector<Cells> lines = table(result);
  std::vector<std::size_t> widths(lines[0].size(), 0);
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out = fmt::format("bench {}: {}\n", result.suite, machine_line(result));
  if (result.roofs.copy_gbs) out += fmt::format("roofs: {}\n", roofs_line(result.roofs));
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      // Names and shapes to the left, figures to the right.
      out +=
          i < 2 ? fmt::format("{:<{}}  ", line[i], widths[i]) : fmt::format("{:>{}}  ", line[i], widths[i]);
    }
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  }
  return out;
}

}  // namespace mxjit::bench
