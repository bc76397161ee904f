db = db.getSiblingDB("app");
db.createUser({ user: "app", pwd: "change-me-app", roles: ["readWrite"] });
