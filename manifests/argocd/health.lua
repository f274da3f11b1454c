-- Health of an EspHaDeployment (espha.dev) for Argo CD, which runs it with the resource as `obj`.
-- How to install it: docs/how-to/wait-for-a-deployment.md.

local function health(status, message)
  return {status = status, message = message or ""}
end

local status = obj.status or {}
local conditions = {}
for _, one in ipairs(status.conditions or {}) do
  conditions[one.type] = one
end

local function is_true(name)
  return conditions[name] ~= nil and conditions[name].status == "True"
end

local function message(name)
  return conditions[name] and conditions[name].message
end

if status.observedGeneration == nil or status.observedGeneration < obj.metadata.generation then
  return health("Progressing", "The operator has not seen the newest spec yet.")
end
if is_true("Paused") then
  return health("Suspended", message("Paused"))
end
if is_true("Stalled") then
  return health("Degraded", message("Stalled"))
end
if is_true("Progressing") then
  return health("Progressing", message("Progressing"))
end
if conditions["Available"] ~= nil and not is_true("Available") then
  return health("Degraded", message("Available"))
end
-- A standby that comes back is no reason to call the whole unhealthy: Ready is not asked here.
if is_true("Available") then
  return health("Healthy", message("Available"))
end
return health("Progressing", "The operator has not said yet how it is.")
