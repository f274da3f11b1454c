-- What a script shares with the rest of its project: properties, modules, snippets, files, windows.
-- Runs before anything of the model. `G` is the world of the script, `tools` comes from the prelude.
local G, tools = ...

local type, error, ipairs, pcall, select = type, error, ipairs, pcall, select
local mathtype, concat, pack, read = math.type, table.concat, string.pack, string.unpack
local table_pack, unpack, gmatch, sub, find = table.pack, table.unpack, string.gmatch, string.sub,
  string.find
local length, sorted_keys, host = tools.length, tools.sorted_keys, tools.host

local MOST_DEEP <const> = 100

-- Values that leave the script, as one text, and back; `espha.scripts.packed` reads them as well.
local function put(value, parts, deep)
  local kind = mathtype(value) or type(value)
  if deep > MOST_DEEP then error("a table is nested deeper than " .. MOST_DEEP, 0) end
  if kind == "integer" then parts[#parts + 1] = pack("<c1i8", "i", value)
  elseif kind == "float" then parts[#parts + 1] = pack("<c1d", "d", value)
  elseif kind == "string" then parts[#parts + 1] = pack("<c1s4", "s", value)
  elseif kind == "boolean" then parts[#parts + 1] = value and "T" or "F"
  elseif kind == "table" then
    local keys, n = sorted_keys(value)
    parts[#parts + 1] = pack("<c1I4", "t", n)
    for at = 1, n do
      put(keys[at], parts, deep)
      put(value[keys[at]], parts, deep + 1)
    end
  elseif value == nil then parts[#parts + 1] = "n"
  else error("a " .. kind .. " cannot leave its script", 0) end
  return parts
end

local function packed(value) return concat(put(value, {}, 0)) end

local function unpacked(bytes)
  local place = 1
  local function take()
    local kind = sub(bytes, place, place)
    local value
    place = place + 1
    if kind == "n" then return nil end
    if kind == "T" then return true end
    if kind == "F" then return false end
    if kind == "i" then value, place = read("<i8", bytes, place) return value end
    if kind == "d" then value, place = read("<d", bytes, place) return value end
    if kind == "s" then value, place = read("<s4", bytes, place) return value end
    local size
    size, place = read("<I4", bytes, place)
    value = {}
    for _ = 1, size do
      local key = take()
      value[key] = take()
    end
    return value
  end
  return take()
end

tools.packed, tools.unpacked = packed, unpacked

-- Functions take a table of names, or the same in order.
local function argument(first, name, ...)
  if type(first) == "table" then return first[name] end
  return ...
end

-- Properties ---------------------------------------------------------------------------------

function G.esp_setProperty(first, second)
  host("set", argument(first, "name", first), packed(argument(first, "value", second)))
end

function G.esp_getProperty(first)
  local found = host("get", argument(first, "name", first))
  return found and unpacked(found)
end

function G.esp_removeProperty(first) host("set", argument(first, "name", first), nil) end

function G.esp_addPropertyListener(first, change)
  local name = argument(first, "name", first)
  local listener = { name = name, change = argument(first, "change", change), seen = 0 }
  if type(first) ~= "table" or not first.init then listener.seen = host("version", name) end
  local listeners = tools.kept.listeners
  listeners[#listeners + 1] = listener
  tools.listen()
end

-- Tells listeners what has changed since the script was last called.
function tools.listen()
  for _, listener in ipairs(tools.kept.listeners) do
    local version = host("version", listener.name)
    if version ~= listener.seen then
      listener.seen = version
      local found = host("get", listener.name)
      local change = G[listener.change] or
        error("the script has no function '" .. tostring(listener.change) .. "'", 0)
      change({ name = listener.name, value = found and unpacked(found) })
    end
  end
end

-- Windows ------------------------------------------------------------------------------------

function G.esp_publish(first, second)
  local window, events = argument(first, "window", first), argument(first, "events", second)
  if type(events) ~= "table" then error("esp_publish takes a table of events", 2) end
  if rawget(events, 1) == nil then events = { events } end
  host("publish", window, packed(events))
  return true
end

G.esp_publishAsync = G.esp_publish

function G.esp_subscribe(first, second)
  local snapshot = type(first) == "table" and first.snapshot or false
  return host("subscribe", argument(first, "window", first), argument(first, "handler", second),
              snapshot)
end

function G.esp_unsubscribe(number) host("unsubscribe", number) end

function G.esp_query(first)
  return unpacked(host("query", argument(first, "window", first)))
end

-- Modules and snippets -----------------------------------------------------------------------

function G.require(name)
  local loaded = tools.kept.loaded
  if loaded[name] == nil then
    loaded[name] = true
    local value = tools.run(name)
    if value ~= nil then loaded[name] = value end
  end
  return loaded[name]
end

local function naming(table)
  return table._luaname_ or table.snippet or table.name, table._luafunc_ or table.func
end

-- The function of a snippet: esp_call("name", "function", …), or a table that names both, as
-- `_luaname_` and `_luafunc_`, before or behind the arguments.
function G.esp_call(...)
  local given = table_pack(...)
  local name, func
  if type(given[1]) == "string" then
    name, func, given = given[1], given[2], table_pack(select(3, ...))
  else
    for at = given.n, 1, -1 do
      local each = given[at]
      if type(each) == "table" and (each._luaname_ or each.snippet) then
        name, func = naming(each)
        table.remove(given, at)
        given.n = given.n - 1
        break
      end
    end
  end
  if not name or not func then error("esp_call needs the name of a snippet and a function", 2) end
  local okay, answer = pcall(host, "call", name, func, packed(given))
  if not okay then return { code = false, error = answer, results = {} } end
  return { code = true, results = unpacked(answer) }
end

-- Files --------------------------------------------------------------------------------------

local file = {}
file.__index = file

local readers = {
  a = function(content, at) return sub(content, at), #content + 1 end,
  l = function(content, at)
    if at > #content then return nil, at end
    local stop = find(content, "\n", at, true) or #content + 1
    return sub(content, at, stop - 1), stop + 1
  end,
  L = function(content, at)
    if at > #content then return nil, at end
    local stop = find(content, "\n", at, true) or #content
    return sub(content, at, stop), stop + 1
  end,
  n = function(content, at)
    local first, stop = find(content, "^%s*[-+]?%d+%.?%d*[eE]?[-+]?%d*", at)
    if not first then return nil, at end
    return tonumber(sub(content, first, stop)), stop + 1
  end,
}

function file:read(how, ...)
  if mathtype(how) then
    if self.at > #self.content then return nil end
    self.at = self.at + how
    return sub(self.content, self.at - how, self.at - 1)
  end
  local reader = readers[sub((how or "l"):gsub("^%*", ""), 1, 1)] or error("bad format to read", 2)
  local value
  value, self.at = reader(self.content, self.at)
  if select("#", ...) > 0 then return value, self:read(...) end
  return value
end

function file:lines(how)
  return function() return self:read(how or "l") end
end

function file:seek() return self.at - 1 end
function file:close() return true end
function file:flush() return self end
function file:write() return nil, "a script writes no files" end

tools.library("io", {
  open = function(name, mode)
    if find(mode or "r", "[wa+]") then return nil, "a script writes no files" end
    local content = host("file", name)
    if not content then return nil, name .. ": No such file or directory" end
    return setmetatable({ content = content, at = 1 }, file)
  end,
  lines = function(name)
    local opened = assert(G.io.open(name))
    return opened:lines()
  end,
})
tools.know(file, "file")
