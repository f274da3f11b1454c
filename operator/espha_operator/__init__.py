"""The kopf operator that turns an EspHaDeployment into a running deployment."""
