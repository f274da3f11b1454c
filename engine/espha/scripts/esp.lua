-- What SAS Event Stream Processing offers to Lua beside Lua itself.
-- Runs before anything of the model. `G` is the world of the script, `tools` comes from the prelude.
local G, tools = ...

local type, pairs, ipairs, error, tonumber, select = type, pairs, ipairs, error, tonumber, select
local tostring, getmetatable = tostring, getmetatable
local mathtype, floor, huge = math.type, math.floor, math.huge
local byte, char, find, sub, rep, format, gsub, match =
  string.byte, string.char, string.find, string.sub, string.rep, string.format, string.gsub,
  string.match
local concat, utf8char = table.concat, utf8.char
local length, sorted_keys, text, host, seconds = tools.length, tools.sorted_keys, tools.text,
  tools.host, tools.seconds

local MOST_DEEP <const> = 200

-- JSON ---------------------------------------------------------------------------------------

local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\",
                  ["/"] = "/" }

local function bad_json(at) error("no JSON at character " .. at, 0) end

local function code_point(json, at)
  local digits = match(json, "^%x%x%x%x", at)
  if not digits then bad_json(at) end
  return tonumber(digits, 16)
end

local function unescaped(json, at, parts)
  local letter = sub(json, at, at)
  if letter ~= "u" then
    parts[#parts + 1] = escapes[letter] or bad_json(at)
    return at + 1
  end
  local point = code_point(json, at + 1)
  at = at + 5
  if point >= 0xD800 and point < 0xDC00 and sub(json, at, at + 1) == "\\u" then
    local low = code_point(json, at + 2)
    if low >= 0xDC00 and low < 0xE000 then
      point = 0x10000 + (point - 0xD800) * 0x400 + (low - 0xDC00)
      at = at + 6
    end
  end
  parts[#parts + 1] = utf8char(point)
  return at
end

local function json_text(json, at)
  local stop = find(json, '["\\]', at)
  if stop and byte(json, stop) == 34 then return sub(json, at, stop - 1), stop + 1 end
  local parts = {}
  while stop do
    parts[#parts + 1] = sub(json, at, stop - 1)
    if byte(json, stop) == 34 then return concat(parts), stop + 1 end
    at = unescaped(json, stop + 1, parts)
    stop = find(json, '["\\]', at)
  end
  bad_json(at)
end

local function blank(json, at) return find(json, "[^ \t\r\n]", at) or #json + 1 end

local json_value

local function json_members(json, at, stop, deep, member)
  at = blank(json, at)
  if byte(json, at) == stop then return at + 1 end
  while true do
    at = blank(json, member(at, deep + 1))
    local mark = byte(json, at)
    if mark == stop then return at + 1 end
    if mark ~= 44 then bad_json(at) end
    at = blank(json, at + 1)
  end
end

local function json_object(json, at, deep)
  local object = {}
  local function member(place, below)
    local key
    if byte(json, place) == 34 then key, place = json_text(json, place + 1)
    else
      -- Names without quotes are no JSON, and people write them.
      key = match(json, "^[%a_$][%w_$.-]*", place) or bad_json(place)
      place = place + #key
    end
    place = blank(json, place)
    if byte(json, place) ~= 58 then bad_json(place) end
    object[key], place = json_value(json, blank(json, place + 1), below)
    return place
  end
  return object, json_members(json, at, 125, deep, member)
end

local function json_array(json, at, deep)
  local array, n = {}, 0
  local function member(place, below)
    n = n + 1
    array[n], place = json_value(json, place, below)
    return place
  end
  return array, json_members(json, at, 93, deep, member)
end

function json_value(json, at, deep)
  if deep > MOST_DEEP then error("JSON is nested deeper than " .. MOST_DEEP, 0) end
  local mark = byte(json, at)
  if mark == 123 then return json_object(json, at + 1, deep) end
  if mark == 91 then return json_array(json, at + 1, deep) end
  if mark == 34 then return json_text(json, at + 1) end
  local number = match(json, "^-?%d+%.?%d*[eE]?[-+]?%d*", at)
  if number then return tonumber(number) or bad_json(at), at + #number end
  local word = match(json, "^%a+", at)
  if word == "true" then return true, at + 4 end
  if word == "false" then return false, at + 5 end
  if word == "null" then return nil, at + 4 end
  bad_json(at)
end

function G.esp_parseJson(json)
  if type(json) ~= "string" then return nil end
  local value, at = json_value(json, blank(json, 1), 0)
  if blank(json, at) <= #json then bad_json(at) end
  return value
end

function G.esp_parseJsonFrom(name) return G.esp_parseJson(tools.field(name)) end

local quoted = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function quote(value)
  return '"' .. gsub(value, '[%c"\\]', function(letter)
    return quoted[letter] or format("\\u%04x", byte(letter))
  end) .. '"'
end

local function json_number(value)
  if value ~= value or value == huge or value == -huge then return "null" end
  if mathtype(value) == "integer" then return tostring(value) end
  return floor(value) == value and value > -1e15 and value < 1e15 and format("%.1f", value)
    or format("%.17g", value)
end

local function put_json(value, parts, indent, deep)
  if deep > MOST_DEEP then error("a table is nested deeper than " .. MOST_DEEP, 0) end
  local function put(part) parts[#parts + 1] = part end
  local kind = type(value)
  if kind == "string" then put(quote(value))
  elseif kind == "number" then put(json_number(value))
  elseif kind ~= "table" then put(value == nil and "null" or kind == "boolean" and tostring(value)
    or quote(text(value)))
  else
    local line = indent and "\n" .. rep(indent, deep + 1) or ""
    local n, between = length(value), ""
    local keys, size = sorted_keys(value)
    local list = n > 0 and n == size
    put(list and "[" or "{")
    for at = 1, size do
      put(between .. line)
      if not list then put(quote(text(keys[at])) .. (indent and ": " or ":")) end
      put_json(value[keys[at]], parts, indent, deep + 1)
      between = ","
    end
    if size > 0 and indent then put("\n" .. rep(indent, deep)) end
    put(list and "]" or "}")
  end
  return parts
end

function G.esp_toJson(value) return concat(put_json(value, {}, nil, 0)) end

function G.esp_toString(value)
  if type(value) == "table" then return concat(put_json(value, {}, "  ", 0)) end
  return text(value)
end

-- Time ---------------------------------------------------------------------------------------

local months = { "January", "February", "March", "April", "May", "June", "July", "August",
                 "September", "October", "November", "December" }
local days = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday" }

-- Days from 1970-01-01 to a date of the Gregorian calendar, and back.
local function days_of(year, month, day)
  local months_on = year * 12 + month - 1
  year, month = months_on // 12, months_on % 12 + 1
  if month <= 2 then year = year - 1 end
  local era, shifted = year // 400, (month + 9) % 12
  local of_era = year - era * 400
  local of_year = (153 * shifted + 2) // 5 + day - 1
  return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468
end

local function date_of(since)
  since = since + 719468
  local era = since // 146097
  local of_era = since - era * 146097
  local year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
  local of_year = of_era - (365 * year + year // 4 - year // 100)
  local shifted = (5 * of_year + 2) // 153
  local month = shifted < 10 and shifted + 3 or shifted - 9
  return year + era * 400 + (month <= 2 and 1 or 0), month, of_year - (153 * shifted + 2) // 5 + 1
end

local function moment(time)
  time = floor(time)
  local day, rest = time // 86400, time % 86400
  local year, month, of_month = date_of(day)
  return { year = year, month = month, day = of_month, hour = rest // 3600,
           min = rest // 60 % 60, sec = rest % 60, wday = (day + 4) % 7 + 1,
           yday = day - days_of(year, 1, 1) + 1, isdst = false }
end

local function time_of(when)
  local function part(name, default)
    local found = when[name]
    if found == nil then found = default end
    local number = tonumber(found)
    if not number then error("field '" .. name .. "' missing in date table", 0) end
    return floor(number)
  end
  return days_of(part("year"), part("month"), part("day")) * 86400 + part("hour", 12) * 3600
    + part("min", 0) * 60 + part("sec", 0)
end

local same = { D = "%m/%d/%y", F = "%Y-%m-%d", R = "%H:%M", T = "%H:%M:%S", r = "%I:%M:%S %p",
               c = "%a %b %e %H:%M:%S %Y", x = "%m/%d/%y", X = "%H:%M:%S", h = "%b" }
local shown = {
  Y = function(t) return format("%d", t.year) end,
  y = function(t) return format("%02d", t.year % 100) end,
  C = function(t) return format("%02d", t.year // 100) end,
  m = function(t) return format("%02d", t.month) end,
  d = function(t) return format("%02d", t.day) end,
  e = function(t) return format("%2d", t.day) end,
  H = function(t) return format("%02d", t.hour) end,
  I = function(t) return format("%02d", (t.hour + 11) % 12 + 1) end,
  M = function(t) return format("%02d", t.min) end,
  S = function(t) return format("%02d", t.sec) end,
  p = function(t) return t.hour < 12 and "AM" or "PM" end,
  B = function(t) return months[t.month] end,
  b = function(t) return sub(months[t.month], 1, 3) end,
  A = function(t) return days[t.wday] end,
  a = function(t) return sub(days[t.wday], 1, 3) end,
  j = function(t) return format("%03d", t.yday) end,
  w = function(t) return format("%d", t.wday - 1) end,
  u = function(t) return format("%d", (t.wday + 5) % 7 + 1) end,
  s = function(t) return format("%d", time_of(t)) end,
  z = function() return "+0000" end,
  Z = function() return "GMT" end,
  n = function() return "\n" end,
  t = function() return "\t" end,
  ["%"] = function() return "%" end,
}

local function expanded(pattern)
  return (gsub(pattern, "%%(%a)", function(letter) return same[letter] end))
end

local function formatted(pattern, time)
  local when = moment(time)
  return (gsub(expanded(pattern), "%%(.)", function(letter)
    local show = shown[letter] or error("no such conversion in a date: %" .. letter, 0)
    return show(when)
  end))
end

local function named(list, value, at)
  for number, name in ipairs(list) do
    for _, form in ipairs({ name, sub(name, 1, 3) }) do
      if sub(value, at, at + #form - 1):lower() == form:lower() then return number, at + #form end
    end
  end
end

local function offset(value, at)
  if sub(value, at, at) == "Z" then return 0, at + 1 end
  local sign, hours, minutes = match(value, "^([-+])(%d%d):?(%d%d)", at)
  if not sign then return nil end
  local ahead = (hours * 60 + minutes) * (sign == "-" and -60 or 60)
  return floor(ahead), at + (sub(value, at + 3, at + 3) == ":" and 6 or 5)
end

local digits = { Y = 4, y = 2, m = 2, d = 2, e = 2, H = 2, I = 2, M = 2, S = 2, j = 3, s = 12,
                 f = 9 }
local field_of = { Y = "year", m = "month", d = "day", e = "day", H = "hour", I = "hour",
                   M = "min", S = "sec", j = "yday", s = "since", f = "fraction" }

-- Takes one conversion from a text; returns the place behind it, or nothing when it is not there.
local function take(letter, value, at, found)
  if letter == "B" or letter == "b" then
    found.month, at = named(months, value, at)
  elseif letter == "A" or letter == "a" then
    at = select(2, named(days, value, at))
  elseif letter == "p" then
    found.half = match(value, "^[AaPp][Mm]", at)
    at = found.half and at + 2
  elseif letter == "z" then
    found.ahead, at = offset(value, at)
  elseif letter == "Z" then
    at = at + #match(value, "^%a*", at)
  elseif letter == "%" then
    at = sub(value, at, at) == "%" and at + 1 or nil
  elseif digits[letter] then
    at = find(value, "%S", at) or at
    local number = match(sub(value, at, at + digits[letter] - 1), "^%d+")
    if not number then return nil end
    if letter == "y" then found.year = number + (tonumber(number) < 69 and 2000 or 1900)
    else found[field_of[letter]] = tonumber(number) end
    at = at + #number
    -- A fraction of a second may follow; it is left out.
    if letter == "S" then at = at + #match(value, "^%.?%d*", at) end
  else
    error("no such conversion in a date: %" .. letter, 0)
  end
  return at
end

local function parsed(value, pattern)
  pattern = expanded(pattern)
  local at, place, found = 1, 1, {}
  while place <= #pattern do
    local letter = sub(pattern, place, place)
    if letter == "%" then
      at = take(sub(pattern, place + 1, place + 1), value, at, found)
      if not at then return nil end
      place = place + 2
    elseif find(letter, "%s") then
      at, place = find(value, "%S", at) or #value + 1, place + 1
    else
      if sub(value, at, at) ~= letter then return nil end
      at, place = at + 1, place + 1
    end
  end
  if found.since then return found.since end
  if found.half then
    found.hour = (found.hour or 0) % 12 + (found.half:lower() == "pm" and 12 or 0)
  end
  if found.yday then found.month, found.day = 1, found.yday end
  return days_of(found.year or 1970, found.month or 1, found.day or 1) * 86400
    + (found.hour or 0) * 3600 + (found.min or 0) * 60 + (found.sec or 0) - (found.ahead or 0)
end

function G.esp_parseDate(value, pattern)
  if type(value) ~= "string" then return nil end
  return parsed(value, pattern or "%Y-%m-%d %H:%M:%S")
end

function G.esp_formatDate(time, pattern)
  return formatted(pattern or "%Y-%m-%d %H:%M:%S", time == nil and seconds() or tonumber(time))
end

function G.esp_getSystemSeconds() return seconds() end
function G.esp_getSystemMilli() return tools.milliseconds() end
function G.esp_getSystemMicro() return tools.milliseconds() * 1000 end
function G.esp_getSystemNano() return tools.milliseconds() * 1000000 end
function G.esp_sleep() end

local O = tools.os
function O.time(when) return when == nil and seconds() or time_of(when) end
function O.difftime(late, early) return (late - (early or 0)) * 1.0 end
function O.clock() return tools.milliseconds() / 1000 end
function O.getenv() return nil end
function O.date(pattern, time)
  pattern = gsub(pattern or "%c", "^!", "")
  time = time or seconds()
  if sub(pattern, 1, 2) == "*t" then return moment(time) end
  return formatted(pattern, time)
end

-- Texts and numbers --------------------------------------------------------------------------

local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

function G.esp_base64Encode(value)
  local parts = {}
  for at = 1, #value, 3 do
    local a, b, c = byte(value, at, at + 2)
    local bits = a << 16 | (b or 0) << 8 | (c or 0)
    for place = 0, 3 do
      local known = place < 2 or place == 2 and b or place == 3 and c
      local index = (bits >> (18 - 6 * place) & 63) + 1
      parts[#parts + 1] = known and sub(alphabet, index, index) or "="
    end
  end
  return concat(parts)
end

function G.esp_base64Decode(value)
  local bits, count, parts = 0, 0, {}
  for letter in value:gmatch("[%w+/]") do
    bits, count = (bits << 6 | find(alphabet, letter, 1, true) - 1) & 0xFFFFFF, count + 6
    if count >= 8 then
      count = count - 8
      parts[#parts + 1] = char(bits >> count & 255)
    end
  end
  return concat(parts)
end

function G.esp_getGuids(number)
  local guids, random = {}, tools.random
  for at = 1, number or 1 do
    guids[at] = format("%08x-%04x-4%03x-%04x-%06x%06x", random(0, 0xFFFFFFFF), random(0, 0xFFFF),
      random(0, 0xFFF), random(0x8000, 0xBFFF), random(0, 0xFFFFFF), random(0, 0xFFFFFF))
  end
  return guids
end

function G.esp_getGuid() return G.esp_getGuids(1)[1] end

function G.esp_split(value, between)
  local parts, at = {}, 1
  between = between or ","
  while true do
    local first, last = find(value, between, at, true)
    if not first then break end
    parts[#parts + 1] = sub(value, at, first - 1)
    at = last + 1
  end
  parts[#parts + 1] = sub(value, at)
  return parts
end

function G.esp_trim(value) return match(value, "^%s*(.-)%s*$") end

-- Messages -----------------------------------------------------------------------------------

function G.esp_logMessage(context, message, level, line)
  if type(context) == "table" then
    context, message, level, line =
      context.logcontext or context.context, context.message, context.level, context.line
  end
  local where = line and text(line) or ""
  host("log", text(level or "info"), text(context or ""), text(message), where)
end

function G.print(...)
  local parts = {}
  for at = 1, select("#", ...) do parts[at] = text((select(at, ...))) end
  host("log", "debug", "print", concat(parts, "\t"), "")
end
