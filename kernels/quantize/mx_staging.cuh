// What of a tile passes through shared memory.
#pragma once

#include "quantize/conditional.cuh"
#include "quantize/maxima.cuh"
#include "quantize/mx_codes.cuh"
#include "quantize/mx_groups.cuh"
#include "quantize/panel.cuh"
#include "quantize/turned_tile.cuh"
#include "quantize/values.cuh"

namespace mxjit {

template <class Config>
struct MxStaging {
  static constexpr int bands = (Lane<Config>::tile_rows + 127) / 128;  // of rows, as high as a code tile
  static constexpr int band_rows = Lane<Config>::tile_rows / bands;
  static constexpr bool exchanges = Config::block_rows == 128 || Config::block_columns == 128;

  union {  // a tile's values on their way in, its columns on their way out
    ValueStaging<Config> values;
    typename If<Config::col, TurnedTile<Lane<Config>::tile_rows, Lane<Config>::tile_columns>>::type turned;
  };
  static constexpr int panels = (Lane<Config>::tile_columns + 127) / 128;  // as wide as a code tile
  CodeTile row_codes[Config::row ? bands : 1][panels];
  CodeTile col_codes[Config::col ? bands : 1];
  typename If<exchanges, MaximaExchange<Config>>::type exchange;
  typename If<(Config::group_alignment > 0), GroupTable<Config::max_groups>>::type groups;
};

}  // namespace mxjit
