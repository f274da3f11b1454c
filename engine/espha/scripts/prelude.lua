-- The world of a script: what Lua offers, without what reaches outside or depends on chance.
-- Runs once in each runtime, before anything of the model, and returns the functions that the
-- engine calls. `limit` is the number of instructions that one call may take, `salt` makes the
-- random numbers of two windows differ, `window` is the window's path, `host` is the way out of the
-- script, and what follows are texts of further parts of its world.
local limit, salt, window, outside = ...
local parts_of_world = { select(5, ...) }

local type, next, error, select, tostring = type, next, error, select, tostring
local pcall, rawget, rawset, rawlen, rawequal = pcall, rawget, rawset, rawlen, rawequal
local getmetatable, setmetatable = getmetatable, setmetatable
local sethook, getupvalue, setupvalue, upvalueid =
  debug.sethook, debug.getupvalue, debug.setupvalue, debug.upvalueid
local debug_getmetatable, debug_setmetatable = debug.getmetatable, debug.setmetatable
local sort, insert, remove, concat, unpack, move =
  table.sort, table.insert, table.remove, table.concat, table.unpack, table.move
local random, randomseed, mathtype = math.random, math.randomseed, math.type
local format, rep, load_chunk = string.format, string.rep, load
local ipairs = ipairs

local G, frozen, known, names = {}, {}, {}, {}
local clock, token, count, seeded, spent = nil, 0, 0, false, false

local function stop() error("more than " .. limit .. " instructions in one call", 0) end

-- `#`: of tables with holes Lua may return any border; this one depends on the content alone.
local function length(value)
  if type(value) == "string" then return rawlen(value) end
  if type(value) ~= "table" then error("a " .. type(value) .. " has no length", 0) end
  local low, high = 0, 1
  while rawget(value, high) ~= nil do low, high = high, high * 2 end
  while high - low > 1 do
    local middle = (low + high) // 2
    if rawget(value, middle) == nil then high = middle else low = middle end
  end
  return low
end

local function len(value)
  local meta = debug_getmetatable(value)
  local own = type(value) == "table" and meta and rawget(meta, "__len")
  if own then return (own(value)) end
  return length(value)
end

-- Keys in an order that depends on the keys alone: numbers, texts, then false and true.
local function sorted_keys(t)
  local numbers, texts, n, m = {}, {}, 0, 0
  for key in next, t do
    local kind = type(key)
    if kind == "number" then n = n + 1; numbers[n] = key
    elseif kind == "string" then m = m + 1; texts[m] = key
    elseif kind ~= "boolean" then error("a " .. kind .. " as a key has no order", 0) end
  end
  sort(numbers)
  sort(texts)
  move(texts, 1, m, n + 1, numbers)
  n = n + m
  for _, key in ipairs({ false, true }) do
    if rawget(t, key) ~= nil then n = n + 1; numbers[n] = key end
  end
  return numbers, n
end

local function walk(t)
  if type(t) ~= "table" then error("bad argument to pairs: table expected, got " .. type(t), 2) end
  local keys, n = sorted_keys(t)
  local at = 0
  return function()
    while at < n do
      at = at + 1
      local value = rawget(t, keys[at])
      if value ~= nil then return keys[at], value end
    end
  end
end

function G.pairs(t)
  local meta = debug_getmetatable(t)
  local own = meta and rawget(meta, "__pairs")
  if own then
    local a, b, c = own(t)
    return a, b, c
  end
  return walk(t)
end

function G.next(t, after)
  local keys, n = sorted_keys(t)
  local found = after == nil
  for at = 1, n do
    if found then return keys[at], rawget(t, keys[at]) end
    found = rawequal(keys[at], after)
  end
  return nil
end

-- Texts of tables and functions hold addresses, which differ from engine to engine.
local function text(value)
  local kind = type(value)
  if kind == "table" or kind == "function" then
    local meta = debug_getmetatable(value)
    local own = meta and rawget(meta, "__tostring")
    return own and tostring(own(value)) or kind
  end
  return tostring(value)
end

local function checked(okay, ...)
  if spent then stop() end
  return okay, ...
end

function G.pcall(f, ...) return checked(pcall(f, ...)) end

function G.xpcall(f, handler, ...)
  local function answer(okay, ...)
    if spent then stop() end
    if okay then return true, ... end
    return false, handler(...)
  end
  return answer(pcall(f, ...))
end

function G.setmetatable(t, meta)
  if frozen[t] or rawequal(t, G) then error("the library cannot be changed", 2) end
  if type(meta) == "table" and (rawget(meta, "__gc") ~= nil or rawget(meta, "__mode") ~= nil) then
    error("__gc and __mode depend on the garbage collector", 2)
  end
  return setmetatable(t, meta)
end

function G.rawset(t, key, value)
  if frozen[t] then error("the library cannot be changed", 2) end
  return rawset(t, key, value)
end

function G.rawlen(value) return length(value) end
function G.print() end

G.tostring = text
for _, name in ipairs({ "assert", "error", "getmetatable", "ipairs", "rawequal", "rawget",
                        "select", "tonumber", "type", "_VERSION" }) do
  G[name] = _G[name]
end

local T = { pack = table.pack }

-- In Lua, so that its steps are counted.
function T.move(from, first, last, at, to)
  to = to or from
  if at > first and at <= last and rawequal(from, to) then
    for place = last, first, -1 do to[at + place - first] = from[place] end
  else
    for place = first, last do to[at + place - first] = from[place] end
  end
  return to
end

function T.insert(t, ...)
  local n, count = len(t), select("#", ...)
  if count == 1 then t[n + 1] = (...); return end
  local at, value = ...
  if count ~= 2 or mathtype(at) ~= "integer" or at < 1 or at > n + 1 then
    error("bad position for table.insert", 2)
  end
  for place = n, at, -1 do t[place + 1] = t[place] end
  t[at] = value
end

function T.remove(t, at)
  local n = len(t)
  if at == nil then at = n end
  if n == 0 and (at == 0 or at == 1) then return nil end
  if mathtype(at) ~= "integer" or at < 1 or at > n + 1 then
    error("bad position for table.remove", 2)
  end
  local value = t[at]
  for place = at, n - 1 do t[place] = t[place + 1] end
  t[at > n and at or n] = nil
  return value
end

function T.concat(t, between, first, last) return concat(t, between, first or 1, last or len(t)) end
function T.unpack(t, first, last) return unpack(t, first or 1, last or len(t)) end

-- A merge sort: Lua's own takes its pivot from the clock, and equal elements land by it.
function T.sort(t, before)
  before = before or function(a, b) return a < b end
  local n, from, to = len(t), {}, {}
  move(t, 1, n, 1, from)
  local width = 1
  while width < n do
    for low = 1, n, width * 2 do
      local middle = low + width <= n + 1 and low + width or n + 1
      local high = low + width * 2 <= n + 1 and low + width * 2 or n + 1
      local left, right = low, middle
      for place = low, high - 1 do
        if left < middle and (right >= high or not before(from[right], from[left])) then
          to[place] = from[left]; left = left + 1
        else
          to[place] = from[right]; right = right + 1
        end
      end
    end
    from, to, width = to, from, width * 2
  end
  move(from, 1, n, 1, t)
end

local S = {}
for _, name in ipairs({ "byte", "char", "find", "gmatch", "gsub", "len", "lower", "match",
                        "reverse", "sub", "upper", "pack", "packsize", "unpack" }) do
  S[name] = string[name]
end

-- Repeating nothing takes as many steps as repeating something, and they are not counted.
function S.rep(value, times, between)
  if value == "" and (between or "") == "" then return "" end
  return rep(value, times, between)
end

function S.format(pattern, ...)
  if type(pattern) == "string" and pattern:gsub("%%%%", ""):find("%%[-+ #0-9.]*p") then
    error("%p shows an address, which differs from engine to engine", 2)
  end
  local values, n = { ... }, select("#", ...)
  for at = 1, n do
    local kind = type(values[at])
    if kind == "table" or kind == "function" then values[at] = text(values[at]) end
  end
  return format(pattern, unpack(values, 1, n))
end

local M = {}
for name, value in next, math do M[name] = value end
function M.randomseed() end
function M.random(...)
  if not seeded then randomseed(token, salt ~ count); seeded = true end
  return random(...)
end

local U = {}
for name, value in next, utf8 do U[name] = value end

-- What a traceback holds depends on the machine; the line does not.
local getinfo = debug.getinfo
local D = {}
function D.getinfo(level)
  local found = mathtype(level) and getinfo(level + 1, "l")
  return { currentline = found and found.currentline or -1, short_src = "script", source = "script",
           what = "Lua" }
end
function D.traceback(message) return message end

local libraries = { table = T, string = S, math = M, os = {}, utf8 = U, debug = D }

local function freeze(name, library)
  local proxy = setmetatable({}, {
    __index = library, __metatable = false,
    __newindex = function() error("the library cannot be changed", 2) end,
  })
  frozen[proxy] = name
  G[name] = proxy
end
for name, library in next, libraries do freeze(name, library) end
local metatable_of_texts = debug_getmetatable("")
metatable_of_texts.__index, metatable_of_texts.__metatable = S, false
G._G, G.unpack = G, T.unpack

-- Functions are known by where they were found, so a state can name them.
local function know(f, name)
  if known[f] == nil then known[f] = name; names[name] = f end
end

local function know_all(functions, name)
  local keys, n = sorted_keys(functions)
  for at = 1, n do
    local value = functions[keys[at]]
    if type(value) == "function" then know(value, name .. "." .. keys[at]) end
  end
end

local function host(...)
  local value, reason = outside(...)
  if reason then error(reason, 0) end
  return value
end

-- `kept` is what the library remembers for the script; it is a part of the state.
local kept, row, modules, run = { listeners = {}, loaded = {} }, {}, {}, nil
local tools = {
  kept = kept, os = libraries.os, length = length, sorted_keys = sorted_keys, text = text,
  host = host, know = know_all, random = M.random,
}
function tools.milliseconds() return clock end
function tools.seconds() return clock // 1000 end
function tools.field(name) return row[name] end
function tools.run(name) return run(name) end
function tools.library(name, library)
  libraries[name] = library
  freeze(name, library)
end
for at = 1, #parts_of_world do
  assert(load_chunk(parts_of_world[at], "=library", "t"))(G, tools)
end
know_all(G, "_G")
for name, library in next, libraries do know_all(library, name) end

local initial = {}
for name, value in next, G do initial[name] = value end

-- Visits everything that the main part left behind, in one order on every engine; each variable
-- that functions share is listed once.
local cells, cell_of = {}, {}

local function survey(root, name)
  local seen, number = {}, 0
  local visit
  local function of_function(f)
    if known[f] then return end
    number = number + 1
    know(f, "script." .. number)
    for at = 1, 255 do
      local upname, value = getupvalue(f, at)
      if upname == nil then break end
      local id = upvalueid(f, at)
      if not rawequal(value, G) and upname ~= "__length" and not cell_of[id] then
        cells[#cells + 1] = { f = f, at = at, name = upname }
        cell_of[id] = true
        visit(value)
      end
    end
  end
  function visit(value)
    if type(value) == "function" then of_function(value) end
    if type(value) ~= "table" or seen[value] or frozen[value] then return end
    seen[value] = true
    local keys, n = sorted_keys(value)
    for at = 1, n do visit(rawget(value, keys[at])) end
    visit(debug_getmetatable(value))
  end
  visit(root)
end

local engine = {}
local LENGTH = setmetatable({}, { __pow = function(_, value) return len(value) end })

local function watch() spent = true; stop() end

local function done(okay, ...)
  sethook()
  if okay then return true, ... end
  local reason = ...
  return false, type(reason) == "string" and reason or "an error that is a " .. type(reason)
end

local function guarded(f, ...)
  spent = false
  sethook(watch, "", limit)
  return done(pcall(f, ...))
end

-- The main part runs with the first event, whose clock it sees.
local main, first_clock, first_token, broken

function engine.load(code, name)
  local chunk, reason = load_chunk(code, name, "t", G)
  main = chunk
  return chunk ~= nil, reason
end

-- Modules run before the main part, and at the latest when it asks for them.
function engine.module(name, code) modules[name] = code end

function run(name)
  local code = modules[name]
  if code == nil then error("there is no module '" .. tostring(name) .. "'", 0) end
  local chunk, reason = load_chunk(code, "=" .. name, "t", G)
  return (chunk or error(reason, 0))(LENGTH)
end

local function begin_with(names)
  for at = 1, #names do G.require(names[at]) end
  main(LENGTH)
end

local required, init, settings = {}, nil, nil
function engine.require(...) required = { ... } end
function engine.init(name, given) init, settings = name, given end

local function begin(now, number)
  first_clock, first_token, clock, token, seeded = now, number, now, number, false
  local okay, why = guarded(begin_with, required)
  if okay then okay, why = pcall(survey, { G, kept.loaded }) end
  if not okay then broken = "it cannot be used: " .. tostring(why) end
  return okay
end

local function function_of(name)
  local found = rawget(G, name)
  if type(found) == "function" then return found end
  error("the script has no function '" .. name .. "'", 0)
end

-- Names of the inputs, of the fields of each input, and of what is read from rows that come out,
-- in the order of the values.
local windows, fields, outputs, most = {}, {}, {}, 0
function engine.schema(limit_of_rows, ...) most, outputs = limit_of_rows, { ... } end
function engine.input(window, ...) windows[#windows + 1], fields[#fields + 1] = window, { ... } end

-- How the function is called: `expanded` with its fields as arguments, `blocks` with a list of rows.
local expanded, blocks = false, false
function engine.calling(each, all) expanded, blocks = each, all end

local function answer(name, port, context, ...)
  if #kept.listeners > 0 then tools.listen() end
  local values, fields_of_port = { ... }, fields[port]
  if not fields_of_port then return function_of(name)(context) end
  local data = {}
  row = data
  for at = 1, #fields_of_port do data[fields_of_port[at]] = values[at] end
  context.input = windows[port]
  if expanded then
    local n = #fields_of_port
    values[n + 1] = context
    return function_of(name)(unpack(values, 1, n + 1))
  end
  return function_of(name)(blocks and { data } or data, context)
end

local function invoked(name, bytes)
  if #kept.listeners > 0 then tools.listen() end
  local given = tools.unpacked(bytes)
  return table.pack(function_of(name)(unpack(given, 1, rawget(given, "n") or length(given))))
end

local function copied(value)
  if type(value) ~= "table" then return value end
  local copy = {}
  for at = 1, length(value) do copy[at] = rawget(value, at) end
  return copy
end

local function add(row, flat, n)
  if type(row) ~= "table" then error("a row is to be a table, not a " .. type(row), 0) end
  for at = 1, #outputs do flat[n + at] = copied(rawget(row, outputs[at])) end
  return n + #outputs
end

-- True or false, or how many values the rows have and these values, or nothing and one value.
local function flattened(result)
  local kind = type(result)
  if kind ~= "table" then
    if kind == "function" then error("the function is to return a table, not a function", 0) end
    if kind == "boolean" then return result end
    return nil, result
  end
  local flat, n = {}, 0
  if type(rawget(result, 1)) == "table" then
    local rows = length(result)
    if rows > most then error("more than " .. most .. " rows at once", 0) end
    for at = 1, rows do n = add(rawget(result, at), flat, n) end
  else
    n = add(result, flat, n)
  end
  return n, unpack(flat, 1, n)
end

local function ready(now, number)
  if broken then return false end
  if first_clock then return true end
  if not begin(now, number) then return false end
  if not init then return true end
  local okay, why = guarded(function() function_of(init)(settings) end)
  if not okay then broken = "it cannot be used: " .. why end
  return okay
end

local function at_moment(now, number)
  local okay = ready(now, number)
  clock, token, count, seeded = now, number, count + 1, false
  return okay
end

function engine.start(now, number) return at_moment(now, number), broken end

function engine.call(name, now, number, port, opcode, flags, ...)
  if not at_moment(now, number) then return false, broken end
  local context = { window = window, opcode = opcode, flags = flags }
  local okay, result = guarded(answer, name, port, context, ...)
  if not okay then return false, result end
  return pcall(flattened, result)
end

-- Calls any function with packed arguments; its results come packed.
function engine.invoke(name, now, number, bytes)
  if not at_moment(now, number) then return false, broken end
  local okay, result = guarded(invoked, name, bytes)
  if not okay then return false, result end
  return pcall(tools.packed, result)
end

-- State as one text. Every table is written once and referred to by number, so tables that are
-- shared stay shared, and equal states give equal texts.
local pack, read = string.pack, string.unpack

function engine.state()
  local parts, number_of, queue = {}, {}, {}
  local function put(part) parts[#parts + 1] = part end
  local function write(value, where)
    local kind = mathtype(value) or type(value)
    if kind == "nil" then put("n")
    elseif kind == "boolean" then put(value and "T" or "F")
    elseif kind == "integer" then put(pack("<c1i8", "i", value))
    elseif kind == "float" then put(pack("<c1d", "d", value))
    elseif kind == "string" then put(pack("<c1s4", "s", value))
    elseif rawequal(value, G) then put("g")
    elseif frozen[value] then put(pack("<c1s4", "l", frozen[value]))
    elseif kind == "table" then
      if not number_of[value] then queue[#queue + 1] = value; number_of[value] = #queue end
      put(pack("<c1i8", "t", number_of[value]))
    elseif known[value] then put(pack("<c1s4", "f", known[value]))
    else error("variable " .. where .. " holds a " .. kind .. " made at run time; keep data", 0) end
  end
  if not first_clock then return "" end
  write(first_clock)
  write(first_token)
  write(broken)
  if broken then return concat(parts) end
  write(count)
  write(kept)
  for at = 1, #cells do
    local _, value = getupvalue(cells[at].f, cells[at].at)
    write(value, cells[at].name)
  end
  local changed = {}
  for key in next, G do if not rawequal(G[key], initial[key]) then changed[key] = true end end
  for key in next, initial do if G[key] == nil then changed[key] = true end end
  local keys, n = sorted_keys(changed)
  write(n)
  for at = 1, n do write(keys[at]); write(G[keys[at]], text(keys[at])) end
  local at = 1
  while at <= #queue do
    local entries, size = sorted_keys(queue[at])
    write(debug_getmetatable(queue[at]))
    write(size)
    for place = 1, size do
      write(entries[place])
      write(rawget(queue[at], entries[place]), text(entries[place]))
    end
    at = at + 1
  end
  return concat(parts)
end

function engine.restore(state)
  local place, made = 1, {}
  local function take()
    local kind, value = state:byte(place), nil
    place = place + 1
    if kind == 110 then return nil end -- n
    if kind == 84 then return true end -- T
    if kind == 70 then return false end -- F
    if kind == 103 then return G end -- g
    if kind == 105 or kind == 116 then value, place = read("<i8", state, place) -- i, t
    elseif kind == 100 then value, place = read("<d", state, place) -- d
    else value, place = read("<s4", state, place) end -- s, l, f
    if kind == 108 then return initial[value] end -- l
    if kind == 102 then return names[value] end -- f
    if kind == 116 then
      for number = #made + 1, value do made[number] = {} end
      return made[value]
    end
    return value
  end
  if state == "" then return end
  begin(take(), take())
  broken = take()
  if broken then return end
  count = take()
  local found = take()
  for at = 1, #cells do setupvalue(cells[at].f, cells[at].at, take()) end
  for key in next, G do G[key] = nil end
  for key, value in next, initial do G[key] = value end
  for _ = 1, take() do
    local key = take()
    G[key] = take()
  end
  local at = 1
  while place <= #state do
    debug_setmetatable(made[at], take())
    for _ = 1, take() do
      local key = take()
      rawset(made[at], key, take())
    end
    at = at + 1
  end
  kept.listeners, kept.loaded = found.listeners, found.loaded
end

return engine
