# sensor_rig in a container, from Debian and pip only:
#
#   docker build -t sensor_rig .
#   docker run --rm -it --network host sensor_rig demo
#   docker run --rm -it -v "$PWD:/data" -w /data sensor_rig inspect drive
FROM debian:bookworm-slim

# Python; git for the tests of the documentation; Mesa's software renderer for cameras.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bash ca-certificates git python3 python3-venv libegl1 libgl1-mesa-dri \
    && rm -rf /var/lib/apt/lists/*

# The environment first: it changes only with setup.cfg, the code with every commit. `./rig` names its folder after
# setup.cfg and finds it again below.
WORKDIR /sensor_rig
COPY setup.cfg setup.py pyproject.toml package.xml README.md LICENSE rig ./
COPY resource resource
COPY rig_common rig_common
COPY sensor_rig sensor_rig
COPY sim_sensors sim_sensors
COPY sync_engine sync_engine
RUN ./rig python -c "import mujoco, rclpy"

COPY . .
RUN ./rig check demo
ENTRYPOINT ["/sensor_rig/rig"]
CMD ["--help"]
