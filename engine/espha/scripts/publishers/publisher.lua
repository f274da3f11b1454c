-- The world of a connector's script: Lua without what reaches the machine. The clock and the random
-- numbers are real: a connector stands where events begin.
local limit, host = ...

local sethook, pcall, type, next, error = debug.sethook, pcall, type, next, error

local G = {}
for _, name in ipairs({ "assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall",
                        "rawequal", "rawget", "rawlen", "rawset", "select", "setmetatable",
                        "tonumber", "tostring", "type", "xpcall", "_VERSION" }) do
  G[name] = _G[name]
end
for _, name in ipairs({ "string", "table", "math", "utf8" }) do
  G[name] = {}
  for key, value in next, _G[name] do G[name][key] = value end
end
G.string.dump = nil
getmetatable("").__index, getmetatable("").__metatable = G.string, false
G.os = { time = os.time, date = os.date, clock = os.clock, difftime = os.difftime,
         getenv = function(name) return host.variable(name) end }
G._G = G

local items = {}

local function inject(event, options)
  if #items >= host.most then error("more than " .. host.most .. " events in one call", 0) end
  items[#items + 1] = { event, options.opcode, options.flags }
end

function G.esp_inject(events, options)
  options = options or {}
  if type(events) ~= "table" then error("esp_inject takes a table", 2) end
  if type(events[1]) == "table" then
    for _, event in ipairs(events) do inject(event, options) end
  else
    inject(events, options)
  end
  return true
end

function G.esp_injectCsv(text, options)
  inject(tostring(text), options or {})
  return true
end

function G.esp_getGuids(count)
  local guids = {}
  for at = 1, count or 1 do guids[at] = host.guid() end
  return guids
end

function G.esp_query(options)
  local name = type(options) == "table" and options.window or options
  return { events = host.query(tostring(name)) }
end

local function log(...)
  local texts = {}
  for at = 1, select("#", ...) do texts[at] = tostring((select(at, ...))) end
  host.log(table.concat(texts, "\t"))
end

G.print, G.esp_logMessage = log, log
function G.esp_sleep() end
function G.esp_getSystemMicro() return host.clock() end
function G.esp_parseJson(text) return host.parse(text) end
function G.esp_toString(value) return host.text(value) end

local function stop()
  -- Nothing more is done, whatever catches the error.
  sethook(stop, "", 1)
  error("more than " .. limit .. " instructions in one call", 0)
end

local function guarded(f, ...)
  sethook(stop, "", limit)
  local okay, answer = pcall(f, ...)
  sethook()
  return okay, answer
end

local engine = {}

function engine.load(code)
  local chunk, reason = load(code, "=script", "t", G)
  if not chunk then return false, reason end
  return guarded(chunk)
end

function engine.has(name) return type(G[name]) == "function" end

function engine.call(name)
  items = {}
  local okay, answer = guarded(G[name])
  if okay and type(answer) == "table" then
    okay, answer = pcall(function()
      if type(answer.events) == "table" then G.esp_inject(answer.events) end
      return answer.done
    end)
  end
  return okay, answer, items
end

return engine
